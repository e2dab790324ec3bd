"""Batch results: the steps after a batch of the journal became durable, or its barrier failed.

*Rules*: after a failed barrier the live messages of that segment are rewritten in a fresh one before anything else. Messages
whose content is in the journal alone are moved by a checkpoint soon. Entries in clusters are not rewritten: that would
duplicate them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.journal.commit import IItem
from mailismus.journal.spool_ids import Naming
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.commit.items import epoch_item, rewrite
from mailismus.queue.providers.clustered.control.closing import Closing
from mailismus.queue.providers.clustered.control.waiters import ReadyWaiters
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.spool.draft import RefusedDrafts


class BatchResults:
    """Acts on the results of batches (`journal.batch_events.IBatchListener`)."""

    def __init__(
        self,
        memtable: Memtable,
        segments: JournalSegments,
        refused: RefusedDrafts,
        waiters: ReadyWaiters,
        checkpoints: CheckpointRunner,
        closing: Closing,
        naming: Naming,
        largest_item: int,
    ) -> None:
        """`largest_item`: bytes of records that one item may hold."""
        self._memtable = memtable
        self._segments = segments
        self._refused = refused
        self._waiters = waiters
        self._checkpoints = checkpoints
        self._closing = closing
        self._naming = naming
        self._largest_item = largest_item

    def on_durable(self) -> None:
        self._refused.drop()
        self._segments.measure()
        self._segments.remove_spoiled()
        self._waiters.fire_ready()
        self._checkpoints.on_batch()
        self._closing.check()

    def on_failed(self) -> Sequence[IItem]:
        self._segments.remove_spoiled()
        failed = self._segments.note_failed()
        if not failed:
            return ()  # no segment could be begun: all written batches are whole
        self._checkpoints.hurry()
        rewritten = [
            item
            for journaled in self._memtable.messages.values()
            if journaled.segment in failed and (journaled.is_in_silo or journaled.content is not None)
            for item in rewrite(journaled, self._largest_item)
        ]
        return rewritten or [epoch_item(self._naming.epoch, _ignore)]  # a failed record must be denied


def _ignore() -> None:
    """Nothing waits for the record."""
