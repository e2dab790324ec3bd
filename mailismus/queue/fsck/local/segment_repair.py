"""Repair of a segment: the wrong byte in a header or a batch that does not check.

*Rules*: nothing is guessed. A header or a batch is repaired only where its CRC determines the one byte that is wrong.

*Not here*: a header of which nothing is left, which is derived from the first batch (`journal.replay`).

Source: `docs/formats/journal`.
"""

from __future__ import annotations

import struct
import zlib

import attrs

from mailismus.journal.batch import (
    BATCH_HEAD_SIZE,
    BLOCK,
    decode_batch,
    decode_header,
    padded_size,
)
from mailismus.journal.frame import without_marks
from mailismus.journal.replay import FoundSegment, Journal
from mailismus.queue.fsck.local.one_byte import LONGEST_FOR_BIT, find_change, find_one_difference
from mailismus.queue.fsck.local.patches import Patch

LONGEST_MARKED = 8192
"""Bytes of a batch with marks whose size may be what is wrong: each of 1,024 sizes is tried."""

_HEADER_SIZE = 64
"""Bytes of a header before its CRC."""
_HEAD_SIZE = BATCH_HEAD_SIZE - 4
"""Bytes of a batch's head before its CRC."""
_CRC = struct.Struct("<I")
_SIZE_AT = 12
"""Where a batch's head says how many bytes of records follow."""


@attrs.frozen
class Mended:
    """The patch that makes a header or a batch check again."""

    patch: Patch
    start: int
    size_bytes: int
    """Of the header or the batch, in its segment."""
    number: int
    """Of the segment, if it is a header."""
    sequence: int
    """Of the batch; of the segment's first one, if it is a header."""


def mend_header(journal: Journal, segment: FoundSegment) -> Mended | None:
    """The patch of the segment's header; None: not known."""
    block = segment.file.read_at(0, BLOCK)
    change = find_change(block[:_HEADER_SIZE], *_CRC.unpack_from(block, _HEADER_SIZE)) if len(block) == BLOCK else None
    if change is None:
        return None
    header = decode_header(block[: change.position] + bytes((change.value,)) + block[change.position + 1 :])
    others = [other.header for other in journal.used if other is not segment and not other.is_guessed]
    if header is None or any(other is not None and other.number == header.number for other in others):
        return None
    patch = Patch(segment.path, change.position, bytes((change.value,)))
    return Mended(patch, 0, BLOCK, header.number, header.first_sequence)


def mend_batch(segment: FoundSegment, offset: int, room: int) -> Mended | None:
    """The patch of the batch that begins at `offset` of this segment and takes at most `room` bytes; None: not known."""
    assert segment.header is not None
    data = segment.file.read_at(offset, room)
    nonce = segment.header.nonce
    for at, value in _candidates(data):
        byte = bytes((value,))
        batch = decode_batch(data[:at] + byte + data[at + 1 :], 0, nonce)
        if batch is not None:
            return Mended(Patch(segment.path, offset + at, byte), offset, batch.end, 0, batch.sequence)
    return None


def _candidates(data: bytes) -> list[tuple[int, int]]:
    """Single bytes whose change may make the batch at the start of the data check: position and value."""
    if len(data) < BATCH_HEAD_SIZE:
        return []
    found: list[tuple[int, int]] = []
    (size,) = struct.unpack_from("<I", data, _SIZE_AT)
    stored = data[_HEAD_SIZE:BATCH_HEAD_SIZE]
    if BATCH_HEAD_SIZE + size <= len(data):
        records = data[BATCH_HEAD_SIZE : BATCH_HEAD_SIZE + size]
        for covered in (records, bytes(without_marks(records))):  # its magic may be what is wrong
            found += _candidates_in(data[:_HEAD_SIZE] + covered, stored)
    for marked in (False, True):
        found += _candidates_of_size(data, marked=marked)
    return found


def _candidates_in(protected: bytes, stored: bytes) -> list[tuple[int, int]]:
    """The byte of the CRC, or of what it protects."""
    found = []
    in_crc = find_one_difference(stored, _CRC.pack(zlib.crc32(protected)))
    if in_crc is not None:
        found.append((_HEAD_SIZE + in_crc.position, in_crc.value))
    change = find_change(protected, *_CRC.unpack(stored))
    if change is not None:
        behind_head = 0 if change.position < _HEAD_SIZE else BATCH_HEAD_SIZE - _HEAD_SIZE
        found.append((change.position + behind_head, change.value))
    return found


def _candidates_of_size(data: bytes, *, marked: bool) -> list[tuple[int, int]]:
    """The byte of the size field that is wrong, if one is."""
    (stored,) = _CRC.unpack_from(data, _HEAD_SIZE)
    for at in range(_SIZE_AT, _SIZE_AT + 4):
        for value in range(256):
            head = data[:at] + bytes((value,)) + data[at + 1 : _HEAD_SIZE]
            (size,) = struct.unpack_from("<I", head, _SIZE_AT)
            if size > LONGEST_FOR_BIT or padded_size(size) > len(data):
                continue
            records = data[BATCH_HEAD_SIZE : BATCH_HEAD_SIZE + size]
            if marked and size > LONGEST_MARKED:
                continue
            if zlib.crc32(without_marks(records) if marked else records, zlib.crc32(head)) == stored:
                return [(at, value)]
    return []
