"""The reply parser: whatever a server sends, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.reply import MAX_TEXT, Reply
from mailismus.smtp.client.reply_parser import MAX_LINE, MAX_LINES, RawReply, ReplyParser, list_keywords, make_reply

GOOD: list[tuple[bytes, list[RawReply]]] = [
    (b"250 Ok\r\n", [(250, b"250 Ok")]),
    (b"250\r\n", [(250, b"250")]),
    (b"250 Ok\n", [(250, b"250 Ok")]),
    (b"220-a\r\n220-b\r\n220 c\r\n", [(220, b"220-a\n220-b\n220 c")]),
    (b"250 a\r\n354 b\r\n599 c\r\n", [(250, b"250 a"), (354, b"354 b"), (599, b"599 c")]),
    (b"250-first\r\n550 last counts\r\n", [(550, b"250-first\n550 last counts")]),
    (b"250 \0\x1b[2J\xff\r\n", [(250, b"250 \0\x1b[2J\xff")]),
    (b"250 " + b"x" * (MAX_LINE - 4) + b"\r\n", [(250, b"250 " + b"x" * (MAX_LINE - 4))]),
]

BROKEN: list[tuple[bytes, int]] = [
    (b"hello\r\n", 0),
    (b"\r\n", 0),
    (b"25 Ok\r\n", 0),
    (b"150 no such class\r\n", 0),
    (b"600 no such class\r\n", 0),
    (b"250_Ok\r\n", 0),
    (b"2x0 Ok\r\n", 0),
    (b"\xb2\xb5\xb0 Ok\r\n", 0),
    (b"+50 Ok\r\n", 0),
    (b"250 first\r\n\0\0\0\0\r\n", 1),
    (b"250 " + b"x" * (1 << 20) + b"\r\n", 0),
    (b"250 " + b"x" * (MAX_LINE + 1), 0),
    (b"250-again\r\n" * (MAX_LINES + 1), 0),
    (b"250 well\r\n" + b"250-again\r\n" * 5000, 1),
]


@pytest.mark.parametrize(("data", "replies"), GOOD)
def test_replies_come_out_whole_however_they_are_cut(data: bytes, replies: list[RawReply]) -> None:
    whole = ReplyParser()
    assert whole.feed(data) == replies
    byte_by_byte = ReplyParser()
    assert [reply for i in range(len(data)) for reply in byte_by_byte.feed(data[i : i + 1])] == replies
    assert not whole.broken
    assert not byte_by_byte.broken
    assert not whole.is_inside


@pytest.mark.parametrize(("data", "count"), BROKEN)
def test_what_is_no_reply_breaks_the_parser_for_good(data: bytes, count: int) -> None:
    for step in (len(data), 1000, 7):
        parser = ReplyParser()
        found = [reply for i in range(0, len(data), step) for reply in parser.feed(data[i : i + step])]
        assert len(found) == count
        assert parser.broken
        assert parser.feed(b"250 Ok\r\n") == []


@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_cuts_do_not_matter(rows: list[tuple[bytes, list[RawReply]]], random: object) -> None:
    data = b"".join(row[0] for row in rows)
    parser, found, at = ReplyParser(), list[RawReply](), 0
    while at < len(data):
        step = random.randint(1, 400)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
        found += parser.feed(data[at : at + step])
        at += step
    assert found == [reply for row in rows for reply in row[1]]


@given(st.binary(max_size=5000))
def test_no_bytes_crash_it_or_make_it_grow(data: bytes) -> None:
    parser = ReplyParser()
    for code, raw in parser.feed(data):
        reply = make_reply(code, raw)
        assert 200 <= reply.code < 600
        assert len(reply.text) <= MAX_TEXT
        assert all(32 <= byte < 127 for byte in reply.text)
    assert len(parser._rest) <= MAX_LINE + 1
    assert len(parser._lines) <= MAX_LINES


@pytest.mark.parametrize(
    ("code", "raw", "reply"),
    [
        (250, b"250 2.0.0 Ok: queued", Reply(250, b"2.0.0", b"Ok: queued")),
        (250, b"250 2.0.0", Reply(250, b"2.0.0", b"")),
        (250, b"250", Reply(250, b"", b"")),
        (550, b"550 2.1.1 class does not agree", Reply(550, b"", b"2.1.1 class does not agree")),
        (550, b"550 5.1.1.1 not well-formed", Reply(550, b"", b"5.1.1.1 not well-formed")),
        (550, b"550 5.1234.1 too long", Reply(550, b"", b"5.1234.1 too long")),
        (550, b"550-5.7.1 no\n550-5.7.1 thank\n550 5.7.1 you", Reply(550, b"5.7.1", b"no thank you")),
        (450, b"450-wait\n450 4.2.0 longer", Reply(450, b"4.2.0", b"wait longer")),
        (250, b"250 a\tb\0c\x1bd\xe9e\x7f", Reply(250, b"", b"a b?c?d?e?")),
        (250, b"250 " + b"x" * 2000, Reply(250, b"", b"x" * MAX_TEXT)),
    ],
)
def test_a_reply_is_made_harmless(code: int, raw: bytes, reply: Reply) -> None:
    assert make_reply(code, raw) == reply


def test_keywords_are_read_from_a_reply_to_ehlo() -> None:
    raw = b"250-mx.example greets\n250-PIPELINING\n250-size 1000\n250 8BITMIME"
    assert list_keywords(raw) == {b"PIPELINING": b"", b"SIZE": b"1000", b"8BITMIME": b""}
