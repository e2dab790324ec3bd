"""Ends ahead: outcomes that only end entries are written while a batch is under way, so that a kill repeats few deliveries.

Their names in todo go, or their lines are marked done, at once. Nothing of it counts before its own batch, which does the
same again and makes it durable; until then a power cut may undo it, and a failure is for that batch to meet.

*Rules*: none is of a message that the batch under way changes. No batch begins before they have ended: a file that it writes
anew would be marked at a place that is not meant.
"""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred

from mailismus.disk.worker import IWorker
from mailismus.queue.providers.chunk.index.changes import FileChange
from mailismus.queue.providers.chunk.write.batch import BatchWriter


class EndsAhead:
    """Hands them over: all that have come while others were written go together."""

    def __init__(self, writer: BatchWriter, worker: IWorker) -> None:
        self._writer, self._worker = writer, worker
        self._changes: list[FileChange] = []
        self.is_idle = True
        """Whether none is under way. Read only."""

    def add(self, change: FileChange) -> Deferred[None] | None:
        """Write this one. Fires when none is under way any more; None: one that was returned before does so."""
        self._changes.append(change)
        return Deferred.fromCoroutine(self._write()) if self.is_idle else None

    async def _write(self) -> None:
        self.is_idle = False
        while self._changes:
            changes, self._changes = self._changes, []
            await self._worker.run(partial(self._writer.end_ahead, changes))
        self.is_idle = True
