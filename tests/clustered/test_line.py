"""The recipient line: whatever is in an entry comes back, and nothing breaks a line."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.files.recipient_line import DONE, escape, format_lines, parse_line, stored_seconds, unescape
from mailismus.queue.interface import Area, Entry, Message

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
    st.just(0) | st.integers(0, 1 << 40),
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


@pytest.mark.parametrize("byte", range(256))
def test_every_byte_alone_and_among_others_is_one_printable_word_and_comes_back(byte: int) -> None:
    for value in (bytes((byte,)), bytes((byte, byte)), b"a%bz" % bytes((byte,)), b"%b." % bytes((byte,))):
        field = escape(value)
        assert all(0x21 <= each <= 0x7E for each in field)
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


def a_message(flags: bytes, size: int = 4711) -> Message | None:
    """What a line with these flags tells of its message."""
    body = b"A 0000000100000001 2/2 1700000000000 1700000000000 3 %d %b - a@b c@d - - - -" % (size, flags)
    parsed = parse_line(b" %b %08x" % (body, zlib.crc32(body)), Area.INCOMING)
    return None if parsed is None else parsed[0]


@pytest.mark.parametrize(
    ("flags", "eightbit", "size_bytes", "stuffed_dots"),
    [
        (b"-", False, 4711, 0),
        (b"8BITMIME", True, 4711, 0),
        (b"DOTS=11", False, 4700, 11),
        (b"8BITMIME,DOTS=11", True, 4700, 11),
        (b"DOTS=4711", False, 0, 4711),
        (b"8BITMIME,FUTURE=1,DOTS=1,X", True, 4710, 1),
        (b"FUTURE", False, 4711, 0),
    ],
)
def test_flags_tell_what_of_the_stored_size_is_no_part_of_the_message(
    flags: bytes, eightbit: bool, size_bytes: int, stuffed_dots: int
) -> None:
    message = a_message(flags)
    assert message is not None
    assert (message.eightbit, message.size_bytes, message.stuffed_dots) == (eightbit, size_bytes, stuffed_dots)
    assert message.stored_bytes == 4711


@pytest.mark.parametrize("flags", [b"DOTS=4712", b"DOTS=-1", b"DOTS=", b"DOTS=x"])
def test_flags_that_make_no_sense_do_not_check(flags: bytes) -> None:
    assert a_message(flags) is None


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


@given(st.floats(0, 4e9))
def test_a_running_queue_tells_the_seconds_that_its_lines_keep(time_s: float) -> None:
    message = Message(SpoolId(1), b"a@b", b"-", False, 0.0, 1, 1, [], 0)
    entry = Entry(1, b"c@d", Area.DEFERRED, time_s)
    found = parse_line(format_lines(message, [entry])[:-1], Area.DEFERRED)
    assert found is not None
    assert int(found[1].due_at) == stored_seconds(time_s)


def test_a_time_right_before_a_second_is_that_second() -> None:
    """What is told and what is kept once differed by it."""
    assert stored_seconds(1795447833.999998) == 1795447834
    assert stored_seconds(1795447833.9994) == 1795447833
