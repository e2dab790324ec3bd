"""Frames: how records follow each other in a batch that has marks, as far as the journal must know it. Pure.

    frame = kind:1 area:1 mark:1 detail:1 id:8 text-size:4 content-size:4, then text, then content

A mark is the one byte of a record that is written again in place, when its batch has long been durable. It is outside the
CRC of the batch: the CRC is that of the records with all marks clear.

*Not here*: what kinds there are, and what a mark means.
"""

from __future__ import annotations

import struct

FRAME = struct.Struct("<ccBBQII")
"""Kind, area, mark, detail, id, bytes of text, bytes of content."""

MARK_AT = 2
"""Offset of the mark in a record."""

_SIZES = struct.Struct("<II")
_SIZES_AT = 12


def without_marks(records: bytes | memoryview) -> bytearray:
    """Return the records with all marks clear. Bytes that are no records are changed anyhow: their CRC does not check."""
    clear = bytearray(records)
    offset, end = 0, len(clear) - FRAME.size
    while offset <= end:
        clear[offset + MARK_AT] = 0
        text_size, content_size = _SIZES.unpack_from(clear, offset + _SIZES_AT)
        offset += FRAME.size + text_size + content_size
    return clear
