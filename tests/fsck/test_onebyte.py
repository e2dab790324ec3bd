"""One changed byte is found by its CRC, and other damage is not taken for one."""

from __future__ import annotations

import random
import zlib

from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.fsck.local.one_byte import (
    LONGEST_FOR_BIT,
    LONGEST_FOR_BYTE,
    ByteChange,
    find_change,
)
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import BadLine
from mailismus.queue.providers.clustered.fsck.evidence.bad_lines import join_torn, mend_line


@given(st.binary(min_size=1, max_size=300), st.data())
def test_any_changed_byte_is_found(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    other = draw.draw(st.integers(0, 255).filter(lambda value: value != data[at]))
    changed = data[:at] + bytes((other,)) + data[at + 1 :]
    assert find_change(changed, zlib.crc32(data)) == ByteChange(at, data[at])


def test_a_flipped_bit_is_found_in_a_long_text_and_a_changed_byte_is_not_looked_for() -> None:
    data = bytearray(random.Random(1).randbytes(LONGEST_FOR_BIT))
    crc = zlib.crc32(data)
    right = data[40_000]
    data[40_000] ^= 0x20
    assert find_change(bytes(data), crc) == ByteChange(40_000, right)
    data[40_000] ^= 0x07
    assert find_change(bytes(data), crc) is None
    assert find_change(bytes(data) + b"x", crc) is None


def test_other_damage_is_not_taken_for_one_byte() -> None:
    chance = random.Random(2)
    for size in (200, LONGEST_FOR_BYTE):
        for _ in range(300):
            data = bytearray(chance.randbytes(size))
            crc = zlib.crc32(data)
            at = chance.randrange(size - 40)
            data[at : at + 40] = bytes(40)
            assert find_change(bytes(data), crc) is None


def line() -> bytes:
    message = Message(SpoolId(7 << 32), b"a@b.example", b"127.0.0.1", False, 1.7e9, 34, 2, [])
    return format_lines(message, [Entry(2, b"c@d.example", Area.DEFERRED, 1.7e9)])[:-1]


def test_every_byte_of_a_line_can_be_put_right() -> None:
    whole = line()
    for at in range(1, len(whole)):
        for other in (whole[at] ^ 0x01, 0, ord(" ")):
            damaged = whole[:at] + bytes((other,)) + whole[at + 1 :]
            if damaged == whole:
                continue
            mended = mend_line(BadLine(20, damaged), Area.DEFERRED)
            assert mended is not None
            assert (mended.offset, mended.byte) == (20 + at, whole[at : at + 1])
            assert (mended.line.offset, mended.line.entry.number, mended.line.is_done) == (20, 2, False)


def test_a_line_that_a_line_end_tore_is_one_again() -> None:
    whole = line()
    for at in range(2, len(whole) - 1):
        pieces = [BadLine(20, whole[:at]), BadLine(21 + at, whole[at + 1 :]), BadLine(500, b"else")]
        joined = list(join_torn(pieces))
        assert [piece.offset for piece in joined] == [20, 500]
        assert mend_line(joined[0], Area.DEFERRED) is not None
