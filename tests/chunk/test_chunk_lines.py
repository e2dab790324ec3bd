"""Lines and files of a message: what is written is read, and what does not check is not there."""

from __future__ import annotations

import zlib

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.chunk.format.files import format_envelope, format_info, parse_info, read_lines
from mailismus.queue.providers.chunk.format.line import format_chunk_lines

MESSAGE = Message(SpoolId(0x100000007), b"a b@x.example", b"192.0.2.1", True, 1_700_000_000.5, 1200, 3, [], 4, b"RET=HDRS")
ENTRIES = [
    Entry(1, b"joe@home.example", Area.INCOMING, 1_700_000_000.5),
    Entry(2, b"r%@d.example", Area.DEFERRED, 1_700_000_900.0, 3, Reply(451, b"4.3.0", b"come back"), b"mx[192.0.2.9]:25"),
    Entry(3, b"", Area.BOUNCES, 1_700_000_000.0, 1, Reply(550, b"", b""), b"-", b"notify=NEVER"),
]
ENDED = [QueueId(SpoolId(5), 2), QueueId(SpoolId(6), 1)]


def test_what_is_written_is_read() -> None:
    read = read_lines(format_envelope(MESSAGE, ENTRIES, ENDED))
    assert [one.entry for one in read.lines] == ENTRIES
    assert all(one.message == MESSAGE for one in read.lines)
    assert (list(read.ended), read.bad, read.torn_bytes) == (ENDED, (), 0)


def test_a_byte_that_changed_costs_its_line_at_most() -> None:
    data = b"".join(format_chunk_lines(MESSAGE, ENTRIES))
    starts = {one.offset for one in read_lines(data).lines}
    for at in range(len(data)):
        for byte in (data[at] ^ 1, 0):
            changed = data[:at] + bytes((byte,)) + data[at + 1 :]
            read = read_lines(changed)
            if at in starts:
                assert [one.entry for one in read.lines] == ENTRIES
                assert not any(one.is_done for one in read.lines)
                continue
            left = [one.entry for one in read.lines]
            assert len(left) in ((2,) if data[at] != 10 else (1, 2))
            assert all(entry in ENTRIES for entry in left)
            assert read.bad or read.torn_bytes


def test_only_an_x_is_done() -> None:
    (line,) = format_chunk_lines(MESSAGE, ENTRIES[:1])
    assert read_lines(b"x" + line[1:]).lines[0].is_done
    for byte in (b" ", b"\0", b"X", b"y"):
        assert not read_lines(byte + line[1:]).lines[0].is_done


def test_a_torn_line_is_not_there() -> None:
    first, second = format_chunk_lines(MESSAGE, ENTRIES[:2])
    for end in range(len(second)):
        read = read_lines(first + second[:end])
        assert [one.entry.number for one in read.lines] == [1]
        assert read.torn_bytes == end


def test_info_is_read_or_does_not_check() -> None:
    data = format_info(MESSAGE)
    assert parse_info(data) == (MESSAGE.spool_id, 3, b"a b@x.example")
    for at in range(len(data)):
        assert parse_info(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]) is None
        assert parse_info(data[:at]) is None


@pytest.mark.parametrize("body", [b"G 0000000100000001 3 a", b"F 0000000100000001 3", b"F 0000000100000001 3 a b"])
def test_an_info_file_of_another_form_is_none_though_its_crc_is_right(body: bytes) -> None:
    assert parse_info(b"%b %08x\n" % (body, zlib.crc32(body))) is None


def test_a_line_with_another_letter_ends_nothing_though_its_crc_is_right() -> None:
    body = b"Q " + str(ENDED[0]).encode("ascii")
    read = read_lines(b" %b %08x\n" % (body, zlib.crc32(body)))
    assert (read.ended, len(read.bad)) == ((), 1)


def test_a_line_of_an_area_that_nobody_knows_is_not_there_though_its_crc_is_right() -> None:
    (line,) = format_chunk_lines(MESSAGE, ENTRIES[:1])
    body = b"Q" + line[2:-10]
    read = read_lines(b" %b %08x\n" % (body, zlib.crc32(body)))
    assert (read.lines, len(read.bad)) == ((), 1)


@pytest.mark.parametrize("line", [b"", b" ", b"x 00000000", b" 00000000", b"00000000", b"  00000000"])
def test_a_line_without_a_body_is_none(line: bytes) -> None:
    assert read_lines(line + b"\n").bad == ((0, len(line) + 1),)
