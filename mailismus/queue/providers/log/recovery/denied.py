"""Denied batches: the former copy of the last batch, and what a barrier failed for, are marked while a header denies them.

    own barrier -> marks of the envelopes in denied batches -> sync -> everything else

The header that denies a batch goes when its segment is free. What it denied would then count again: a message that was
delivered since from the batch that was written again. So a start marks it, durably, before it does anything that could free
that segment. Blocks.
"""

from __future__ import annotations

from itertools import pairwise

from mailismus.errors import Corrupt
from mailismus.journal.batch import BLOCK, DENIES_NOTHING, Batch
from mailismus.journal.replay import FoundSegment
from mailismus.queue.providers.log.format.record import ENVELOPES, GARBAGE, mark_offset, read_records
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from mailismus.queue.providers.log.recovery.replay import ReplayedLog


def mark_denied(found: ReplayedLog) -> None:
    """Mark the envelopes of denied batches behind what was replayed, durably. Called behind the start's own barrier, which
    denies the former copy of the last batch. Raises OSError."""
    last = found.last
    if last is None:
        return
    used = found.journal.used
    followed = {id(segment): following for segment, following in pairwise(used)}
    for segment in used:
        following = followed.get(id(segment))
        if segment is found.last_segment:
            begin, good = last.offset, last.sequence - 1
        elif segment.end:
            begin, good = segment.end, segment.limit
        elif following is not None and following.header is not None and following.header.first_sequence == last.sequence:
            begin, good = BLOCK, last.sequence - 1  # a start was stopped behind its own barrier: the copy may be there yet
        else:
            continue
        _mark_behind(segment, begin, min(good, last.sequence - 1))


def _mark_behind(segment: FoundSegment, begin: int, good: int) -> None:
    """Mark the envelopes of batches from this offset on, with higher sequence numbers than `good`."""
    assert segment.header is not None
    end = segment.size_bytes if begin == BLOCK else begin + 1
    is_changed = False
    while True:
        reader = BatchReader(Stretch(segment.file, segment.header, begin, end, good, DENIES_NOTHING))
        batch = reader.next()
        if batch is None:
            break
        is_changed = _mark(segment, batch) or is_changed
        begin, end = batch.end, batch.end + 1
    if is_changed:
        segment.file.sync()


def _mark(segment: FoundSegment, batch: Batch) -> bool:
    """Return whether it has envelopes. They are written even if they are marked: who marked them may not have synced it."""
    offsets = []
    try:
        offsets = [record.offset for record in read_records(batch.records) if record.kind in ENVELOPES]
    except Corrupt:
        return False
    for offset in offsets:
        segment.file.write_at(mark_offset(batch.records_offset + offset), [GARBAGE])
    return bool(offsets)
