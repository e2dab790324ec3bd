"""Lines of a cluster that do not check: which pieces belong together, and the one byte that may be wrong (pure)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mailismus.queue.files.recipient_line import DONE, LIVE, parse_line
from mailismus.queue.fsck.local.one_byte import find_change, find_one_difference
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import BadLine, FoundLine

LONGEST = 8192
"""Bytes. A longer piece is no line."""

_CRC_SIZE = 8


class MendedLine(NamedTuple):
    """A line that checks with one byte changed; `offset`: where in the file this byte is to be written."""

    line: FoundLine
    offset: int
    byte: bytes


def join_torn(bad: Iterable[BadLine]) -> Iterator[BadLine]:
    """Join consecutive pieces: a line in which a byte became an LF looks like two lines."""
    last: BadLine | None = None
    for piece in bad:
        if (
            last is not None
            and last.offset + len(last.data) + 1 == piece.offset
            and len(last.data) + len(piece.data) < LONGEST
        ):
            joined = BadLine(last.offset, last.data + b"\n" + piece.data)
            if mend_line(joined, Area.INCOMING) is not None:
                yield joined
                last = None
                continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def mend_line(bad: BadLine, area: Area) -> MendedLine | None:
    """The line as it was written, if a single byte of it is wrong; None: not known."""
    data = bad.data
    if not _CRC_SIZE + 1 < len(data) <= LONGEST:
        return None
    for position, value in _candidates(data):
        mended = data[:position] + bytes((value,)) + data[position + 1 :]
        parsed = parse_line(LIVE + mended[1:], area)
        if parsed is not None:
            line = FoundLine(bad.offset, mended[:1] == DONE, *parsed)
            return MendedLine(line, bad.offset + position, bytes((value,)))
    return None


def _candidates(data: bytes) -> Iterator[tuple[int, int]]:
    """Bytes that may be wrong, with their values. A line is: state, body, a space, eight digits of the CRC of the body."""
    body, space, digits = data[1 : -_CRC_SIZE - 1], data[-_CRC_SIZE - 1], data[-_CRC_SIZE:]
    wanted = b"%08x" % zlib.crc32(body)
    if digits == wanted:
        if space != ord(" "):
            yield len(data) - _CRC_SIZE - 1, ord(" ")
        return
    in_crc = find_one_difference(digits, wanted)
    if in_crc is not None:
        yield len(data) - _CRC_SIZE + in_crc.position, in_crc.value
    try:
        change = find_change(body, int(digits, 16))
    except ValueError:
        return
    if change is not None:
        yield 1 + change.position, change.value
