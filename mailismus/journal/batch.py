"""Batches and segment headers as bytes: what is on disk between two barriers, whole or not at all.

A segment is a header block, then batches. A batch begins on a block boundary and fills blocks of its own, so no block with
acknowledged bytes is ever written again. It carries the nonce of its segment, which is drawn anew at each use of the file
and kept secret: neither bytes of an earlier use nor bytes of a mail can pass for a batch.

A header counts only with the first batch behind it: one barrier makes both durable.

A *marked* batch has records with marks (`journal.frame`): one byte of each, outside the CRC, may be written again in place.

*Not here*: what the records mean. Source: `docs/formats/journal`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import attrs

from mailismus.journal.frame import without_marks

BLOCK = 4096
NONCE_SIZE = 16
OLDEST_FORMAT = 1
NEWEST_FORMAT = 2
"""The highest format of a segment that this program reads and writes."""

_HEADER = struct.Struct("<8sIQQQIQ16s")
_HEADER_START = struct.Struct("<8sI")
_HEADER_MAGIC = b"MQJ-SEGM"
_BATCH = struct.Struct("<4sQI16s")
_BATCH_MAGIC = b"MQJB"
_MARKED_MAGIC = b"MQJM"
_CRC = struct.Struct("<I")
_LOOKS_ALIKE = 12
"""Bytes, of the 16 of a nonce, that must match: no other batch has so many by chance."""

DENIES_NOTHING = (1 << 64) - 1
"""As a header's last good sequence."""

BATCH_HEAD_SIZE = _BATCH.size + _CRC.size
"""Bytes of a batch before its first record."""


@attrs.frozen
class SegmentHeader:
    """The first block of a segment."""

    number: int
    """Of the segment: rises by one at each use of a file."""
    first_sequence: int
    """Sequence number of the first batch behind it."""
    last_good: int
    """Batches numbered higher than this in *any* earlier segment do not count: their barrier failed, or it is not known
    whether they are durable, and their records are rewritten here."""
    epoch: int
    """The highest epoch that may have been used for spool ids."""
    horizon: int
    """Batches up to this one are not needed any more (the newest checkpoint when the segment was begun)."""
    nonce: bytes
    format: int = OLDEST_FORMAT
    """Of the segment with all of its records (`docs/formats`)."""

    def encode(self) -> bytes:
        """One block."""
        head = _HEADER.pack(
            *(_HEADER_MAGIC, self.format, self.number, self.first_sequence),
            *(self.last_good, self.epoch, self.horizon, self.nonce),
        )
        return (head + _CRC.pack(zlib.crc32(head))).ljust(BLOCK, b"\0")


def header_format(block: bytes) -> int:
    """The format that a segment's first block tells, of a newer program too: magic, format and CRC keep their places for
    ever. 0: there is no header, or it does not check."""
    if len(block) < _HEADER.size + _CRC.size:
        return 0
    magic, found = _HEADER_START.unpack_from(block)
    (crc,) = _CRC.unpack_from(block, _HEADER.size)
    if magic != _HEADER_MAGIC or crc != zlib.crc32(block[: _HEADER.size]):
        return 0
    return int(found)


def decode_header(block: bytes) -> SegmentHeader | None:
    """The header in a segment's first block; None: there is none, it does not check, or it is of a newer format
    (`header_format`)."""
    found = header_format(block)
    if not OLDEST_FORMAT <= found <= NEWEST_FORMAT:
        return None
    _, _, number, first, last_good, epoch, horizon, nonce = _HEADER.unpack_from(block)
    return SegmentHeader(number, first, last_good, epoch, horizon, nonce, found)


def is_unused(data: bytes) -> bool:
    """Whether these bytes are those of a segment that was never begun: all zeros."""
    return not data.strip(b"\0")


def guess_header(data: bytes, number: int) -> SegmentHeader | None:
    """Derive the header of a segment whose own does not check from the first batch, which begins where no client's bytes
    ever do: nonce and first sequence. Such a header denies nothing, and knows no epoch and no horizon; its records may be of
    any format that is read here. None: the first batch does not check either."""
    if len(data) < BLOCK + BATCH_HEAD_SIZE:
        return None
    _, sequence, _, nonce = _BATCH.unpack_from(data, BLOCK)
    if decode_batch(data, BLOCK, nonce) is None:
        return None
    return SegmentHeader(number, sequence, DENIES_NOTHING, 0, 0, nonce, NEWEST_FORMAT)


def highest_sequence(data: bytes) -> int:
    """The highest sequence of any batch whose CRC checks, of any nonce; 0: there is none."""
    highest = 0
    for offset in range(BLOCK, len(data) - BATCH_HEAD_SIZE, BLOCK):
        _, sequence, _, nonce = _BATCH.unpack_from(data, offset)
        if sequence > highest and decode_batch(data, offset, nonce) is not None:
            highest = sequence
    return highest


def looks_torn(data: bytes, offset: int, nonce: bytes) -> bool:
    """Whether a batch of this nonce was begun here, complete or not."""
    if offset + BATCH_HEAD_SIZE > len(data):
        return False
    magic, _, _, found = _BATCH.unpack_from(data, offset)
    magics = max(_alike(magic, _BATCH_MAGIC), _alike(magic, _MARKED_MAGIC))
    return magics >= 3 and _alike(found, nonce) >= _LOOKS_ALIKE


def _alike(found: bytes, wanted: bytes) -> int:
    return sum(one == other for one, other in zip(found, wanted, strict=True))


@attrs.frozen
class Batch:
    """One batch: its offset in the segment, and its records' bytes."""

    offset: int
    sequence: int
    records: bytes

    @property
    def records_offset(self) -> int:
        """Offset of its records in the segment."""
        return self.offset + BATCH_HEAD_SIZE

    @property
    def end(self) -> int:
        """Offset of the next batch."""
        return self.offset + padded_size(len(self.records))


def padded_size(records_size: int) -> int:
    """Bytes in the segment of a batch with so many bytes of records: whole blocks."""
    return -(-(BATCH_HEAD_SIZE + records_size) // BLOCK) * BLOCK


def encode_batch(
    nonce: bytes,
    sequence: int,
    records: Sequence[bytes],
    records_size: int,
    *,
    has_marks: bool = False,
    is_marked: bool = False,
) -> list[bytes]:
    """The buffers to write: head, the given records, padding to the block. No byte of a record is copied. `has_marks`: the
    records have marks, all of them clear, unless it `is_marked`: then each buffer is a number of whole records."""
    head = _BATCH.pack(_MARKED_MAGIC if has_marks else _BATCH_MAGIC, sequence, records_size, nonce)
    crc = zlib.crc32(head)
    for record in records:
        crc = zlib.crc32(without_marks(record) if is_marked else record, crc)
    padding = -(BATCH_HEAD_SIZE + records_size) % BLOCK
    return [head + _CRC.pack(crc), *records, bytes(padding)]


def claimed_size(data: bytes | memoryview, offset: int) -> int:
    """Bytes of records by the head of the batch at `offset`, whether or not it checks."""
    size: int = _BATCH.unpack_from(data, offset)[2]
    return size


def batch_head(data: bytes, offset: int, nonce: bytes) -> tuple[int, int] | None:
    """Sequence number and bytes of records by the head of the batch at `offset`; None: none of this nonce begins here. The
    records may be torn or damaged all the same: only `decode_batch` tells."""
    if offset + BATCH_HEAD_SIZE > len(data):
        return None
    magic, sequence, size, found = _BATCH.unpack_from(data, offset)
    return (sequence, size) if found == nonce and magic in (_BATCH_MAGIC, _MARKED_MAGIC) else None


def decode_batch(data: bytes | memoryview, offset: int, nonce: bytes) -> Batch | None:
    """The batch at `offset` of the segment's bytes; None: there is none of this nonce, or it is torn or does not check."""
    start = offset + BATCH_HEAD_SIZE
    if start > len(data):
        return None
    magic, sequence, size, found = _BATCH.unpack_from(data, offset)
    if magic not in (_BATCH_MAGIC, _MARKED_MAGIC) or found != nonce or start + size > len(data):
        return None
    (crc,) = _CRC.unpack_from(data, offset + _BATCH.size)
    view = memoryview(data)
    records = view[start : start + size]
    checked = without_marks(records) if magic == _MARKED_MAGIC else records
    if crc != zlib.crc32(checked, zlib.crc32(view[offset : offset + _BATCH.size])):
        return None
    return Batch(offset, sequence, bytes(records))
