"""Positions: where a start begins to read the log. Two blocks with the same content, each with its CRC.

Source: `docs/formats/log`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import attrs

from mailismus.queue.providers.log.format.record import LogPlace

NAME = "positions"
NEW_NAME = "positions.new"
"""The file while it is made."""
BLOCK = 4096
FORMAT = 1

_HEAD = struct.Struct("<8sIQQII")
_RUNNER = struct.Struct("<IQI")
_CRC = struct.Struct("<I")
_MAGIC = b"MQL-POSN"
_SEGMENT = struct.Struct("<Q")
MOST_IGNORED = 64
"""Ignored segments in one block, at most."""
MOST_RUNNERS = (BLOCK - _HEAD.size - _CRC.size - MOST_IGNORED * _SEGMENT.size) // _RUNNER.size
"""Runners in one block, at most."""


@attrs.frozen
class Positions:
    """Where a start begins."""

    number: int
    """One more at each write."""
    suffix: int
    """Sequence number of the first batch of the working suffix."""
    runners: Mapping[int, LogPlace]
    """No live envelope of a runner that no work has begun on lies before its place."""
    ignored: tuple[int, ...] = ()
    """Segments that are to be removed: nothing in them counts, marked or not."""

    def encode(self) -> bytes:
        """One block. Raises ValueError for too many runners or segments."""
        if len(self.runners) > MOST_RUNNERS or len(self.ignored) > MOST_IGNORED:
            raise ValueError(f"{len(self.runners)} runners and {len(self.ignored)} segments are too many")
        parts = [_HEAD.pack(_MAGIC, FORMAT, self.number, self.suffix, len(self.runners), len(self.ignored))]
        parts += [_SEGMENT.pack(number) for number in self.ignored]
        parts += [_RUNNER.pack(runner, *place) for runner, place in sorted(self.runners.items())]
        data = b"".join(parts)
        return (data + _CRC.pack(zlib.crc32(data))).ljust(BLOCK, b"\0")


def decode_positions(data: bytes) -> Positions | None:
    """The newer of the blocks that check, from the bytes of the file; None: there is none."""
    found = [_decode(data[offset : offset + BLOCK]) for offset in (0, BLOCK)]
    return max((one for one in found if one is not None), key=lambda one: one.number, default=None)


def _decode(block: bytes) -> Positions | None:
    if len(block) < _HEAD.size + _CRC.size:
        return None
    magic, number_of_format, number, suffix, count, ignored_count = _HEAD.unpack_from(block)
    middle = _HEAD.size + ignored_count * _SEGMENT.size
    end = middle + count * _RUNNER.size
    if magic != _MAGIC or number_of_format != FORMAT or end + _CRC.size > len(block):
        return None
    (crc,) = _CRC.unpack_from(block, end)
    if crc != zlib.crc32(block[:end]):
        return None
    runners = {runner: LogPlace(*place) for runner, *place in _RUNNER.iter_unpack(block[middle:end])}
    ignored = tuple(number for (number,) in _SEGMENT.iter_unpack(block[_HEAD.size : middle]))
    return Positions(number, suffix, runners, ignored)
