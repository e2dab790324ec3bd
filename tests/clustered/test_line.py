"""The recipient line: whatever is in an entry comes back, and nothing breaks a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.line import DONE, escape, format_lines, parse_line, unescape

TIMES = st.integers(0, 1 << 45).map(lambda ms: ms / 1000)
REPLIES = st.none() | st.builds(Reply, st.integers(200, 599), st.binary(max_size=10), st.binary(max_size=60))
MESSAGES = st.builds(
    Message,
    st.integers(0, (1 << 63) - 1).map(SpoolId),
    st.binary(max_size=60),
    st.binary(max_size=40),
    st.booleans(),
    TIMES,
    st.integers(0, 1 << 40),
    st.integers(1, 100_000),
    st.just([]),
)
ENTRIES = st.builds(
    Entry, st.integers(1, 100_000), st.binary(max_size=60), st.just(Area.DEFERRED), TIMES, st.integers(0, 9999), REPLIES
)


@given(st.binary(max_size=100))
def test_a_field_is_one_printable_word_and_comes_back(value: bytes) -> None:
    field = escape(value)
    assert field
    assert all(0x21 <= byte <= 0x7E for byte in field)
    assert unescape(field) == value


@given(MESSAGES, ENTRIES)
def test_a_line_comes_back_as_it_was(message: Message, entry: Entry) -> None:
    text = format_lines(message, [entry])
    assert text.count(b"\n") == 1
    assert text.endswith(b"\n")
    parsed = parse_line(text[:-1], Area.DEFERRED)
    assert parsed is not None
    assert parsed[0] == message
    assert parsed[1] == entry


def a_line() -> bytes:
    message = Message(SpoolId(0x100000001), b"a@b.example", b"192.0.2.1", True, 1.7e9, 4711, 2, [])
    entry = Entry(2, b"c@d.example", Area.INCOMING, 1.7e9, 3, Reply(451, b"4.4.1", b"try later"), b"mx[192.0.2.9]:25")
    return format_lines(message, [entry])[:-1]


def test_a_line_reads_as_documented() -> None:
    assert a_line().rpartition(b" ")[0] == (
        b" A 0000000100000001 2/2 1700000000000 1700000000000 3 4711 8BITMIME 192.0.2.1 a@b.example c@d.example"
        b" 451 4.4.1 try%20later mx[192.0.2.9]:25"
    )


def test_every_changed_byte_is_seen_but_that_of_the_state() -> None:
    line = a_line()
    for at in range(1, len(line)):
        changed = bytearray(line)
        changed[at] ^= 1
        assert parse_line(bytes(changed), Area.INCOMING) is None, at
    assert parse_line(DONE + line[1:], Area.INCOMING) == parse_line(line, Area.INCOMING)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parser(line: bytes) -> None:
    assert parse_line(line, Area.INCOMING) is None
