"""Segments that are free, and those that were being begun anew at a crash: what is left of their earlier use is over.

    over -> gets the name of a free one, durably -> renamed to its new number -> header and first batch written -> barrier

A crash before that barrier leaves one of the two names, any part of the new header, and any part of the first batch, over
batches of the earlier use. With the earlier header, or one derived from an earlier batch, these would count, and bytes
between them would look like damage. Blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.errors import Corrupt
from mailismus.journal.batch import BLOCK, Batch
from mailismus.journal.replay import FoundSegment, Journal, freed_number, named_number, read_batches
from mailismus.queue.providers.log.format.record import ENVELOPES, read_records


def leave_out_free(journal: Journal) -> None:
    """Let such segments not count. One with the name of a free one, and the number of that name in its header, is free. Of
    others all of this must hold, so that none is taken for one that is damaged: its name is that of a free one, or of a
    later use; its header, or its first batch, does not check; its batches lie before the working suffix, and all of their
    envelopes are garbage. Raises OSError."""
    begins = [(one.header.number, one.header.first_sequence) for one in journal.used if one.header and not one.is_guessed]
    for segment in list(journal.used):
        if _is_free(segment) or (_is_renamed(segment, begins) and _is_over(segment, journal.horizon)):
            journal.leave_out(segment)


def _is_free(segment: FoundSegment) -> bool:
    assert segment.header is not None
    return not segment.is_guessed and freed_number(segment.path) == segment.header.number


def _is_renamed(segment: FoundSegment, begins: Sequence[tuple[int, int]]) -> bool:
    """Whether its name is that of a free one, or of a later use than its header's. `begins`: number and first sequence
    number of each segment whose header checks."""
    header, named = segment.header, named_number(segment.path)
    assert header is not None
    if not segment.is_guessed:
        return header.number < named
    return bool(freed_number(segment.path)) or any(
        number < named and first > header.first_sequence for number, first in begins
    )


def _is_over(segment: FoundSegment, horizon: int) -> bool:
    header = segment.header
    assert header is not None
    batches = list(read_batches(segment.file.read_at(0, segment.size_bytes), header))
    if not segment.is_guessed and batches and (batches[0].offset, batches[0].sequence) == (BLOCK, header.first_sequence):
        return False  # whole: only its name is not its own
    return all(batch.sequence <= horizon and _is_garbage(batch) for batch in batches)


def _is_garbage(batch: Batch) -> bool:
    try:
        return all(record.is_marked for record in read_records(batch.records) if record.kind in ENVELOPES)
    except Corrupt:
        return False
