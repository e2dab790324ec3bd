"""Damaged bytes of a segment: which of them a reading could not use.

Between two batches of a segment nothing else ever stands. Behind the last one may lie a batch that a crash tore, or one of
an earlier use of the file: bytes there are damage only where the next segment tells that a batch is missing. Where that
segment is gone, and what stands there looks like a batch, nobody knows.
"""

from __future__ import annotations

from mailismus.journal.batch import BATCH_HEAD_SIZE, looks_torn
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch


def damages_of(reader: BatchReader, stretch: Stretch, *, is_last_piece: bool) -> list[tuple[int, int]]:
    """Return begin and end of each damage, when all of the stretch was read. `is_last_piece`: the segment ends with it."""
    found = list(reader.skipped)
    if reader.behind < stretch.last and stretch.is_exact and is_last_piece:
        found.append((reader.read_end, stretch.end))
    return found


def has_doubtful_end(reader: BatchReader, stretch: Stretch) -> bool:
    """Whether what stands behind the last batch looks like one, and nobody knows whether it was whole once."""
    if stretch.is_exact or reader.behind >= stretch.last:
        return False
    return looks_torn(stretch.file.read_at(reader.read_end, BATCH_HEAD_SIZE), 0, stretch.header.nonce)
