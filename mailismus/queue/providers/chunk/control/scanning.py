"""Scanning: the scan of a start, slice by slice, while mail comes and goes.

    a slice, read in a worker -> messages rest, or are in memory to be written anew -> who waits is told -> the next one

*Rules*: a slice that fails is tried again after `RETRY_S`; what waits for the end of the scan learns of it as a gap.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.queue.interface import Area, Gap
from mailismus.queue.providers.chunk.control.ledger import ChunkLedger
from mailismus.queue.providers.chunk.control.names import ChunkNames
from mailismus.queue.providers.chunk.control.upkeep import ChunkUpkeep
from mailismus.queue.providers.chunk.control.work import ChunkWork
from mailismus.queue.providers.chunk.recovery.scan import ChunkScan, ScanSlice
from mailismus.queue.providers.chunk.write.born import BornNumbers

RETRY_S = 3.0


class ChunkScanning:
    """The scan of one start. `worker` reads; `root`: of the queue, for gaps."""

    _log = Logger()

    def __init__(
        self,
        scan: ChunkScan,
        ledger: ChunkLedger,
        work: ChunkWork,
        upkeep: ChunkUpkeep,
        names: ChunkNames,
        worker: IWorker,
        reactor: IReactorTime,
        root: str,
    ) -> None:
        self._scan, self._ledger, self._work, self._upkeep, self._names = scan, ledger, work, upkeep, names
        self._worker, self._reactor, self._root = worker, reactor, root
        self._waiting: list[Deferred[None]] = []
        self._timer: IDelayedCall | None = None
        self._is_reading = self._is_stopped = False
        self.is_over = False
        """Whether all is read."""
        self._error: OSError | None = None
        self._on_news: Callable[[Collection[Area]], None] = lambda areas: None
        self.has_read_todo = False
        """Whether all that stood in todo has been looked at once: what else is there is of other processes."""
        self.left_in_todo: set[int] = set()
        """Numbers of that which are still to be taken. Read only."""
        self.found = 0
        """Messages that it has found."""

    @property
    def born(self) -> BornNumbers:
        """The numbers that the scan passes over."""
        return self._scan.born

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being read, and nothing will be."""
        return not self._is_reading and (self.is_over or self._is_stopped)

    def start(self, on_news: Callable[[Collection[Area]], None]) -> None:
        """Begin, in a turn of its own. `on_news` is called with the areas of what was found."""
        self._on_news = on_news
        self._timer = self._reactor.callLater(0, self._read)

    def stop(self) -> None:
        """Read no further."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._tell()

    def wait(self) -> Deferred[None]:
        """Fires when all is read, or when that failed or was stopped (`gaps`)."""
        if self.is_over or self._is_stopped or self._error is not None:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    def gaps(self) -> tuple[Gap, ...]:
        """What is not read yet."""
        if self.is_over:
            return ()
        reason = "the start is stopped" if self._error is None else f"can't be read: {self._error.strerror or self._error}"
        return (Gap("part of the queue", reason, 1, self._root),)

    def _read(self) -> None:
        self._timer = None
        self._is_reading = True
        reading = self._worker.run(self._scan.next)
        reading.addCallback(self._on_read).addErrback(self._on_failed)

    def _on_read(self, found: ScanSlice | None) -> None:
        self._is_reading = False
        if found is None:
            self.is_over, self._error = True, None
            self._scan.born.end()
            if self.found:
                self._log.info("Found {count} messages in the queue.", count=self.found)
            self._tell()
            return
        self._enter(found)
        if found.error is not None and self._error is None:
            self._log.error("A part of the queue can't be read; it is tried again: {error}", error=found.error)
        self._error = found.error
        if found.error is not None:
            self._tell()
        if not self._is_stopped:
            self._timer = self._reactor.callLater(RETRY_S if found.error is not None else 0, self._read)

    def _on_failed(self, failure: Failure) -> None:
        self._is_reading, self._is_stopped = False, True
        self._error = OSError(errno.EIO, "internal error")
        self._work.break_down(failure)
        self._tell()

    def _enter(self, found: ScanSlice) -> None:
        areas: set[Area] = set()
        for facts in found.facts:
            if self._ledger.has(facts.spool_id):
                self._log.error("{number} is a second copy of a message.", number=facts.number)
                continue
            self._ledger.rest_found(facts)
            areas.update(facts.counts)
        for known in found.spoiled:
            if self._ledger.has(known.message.spool_id):
                self._log.error("{number} is a second copy of a message.", number=known.number)
                continue
            self._ledger.add_found(known)
            areas.update(entry.area for entry in known.entries.values())
            if not known.is_preprocessed:
                self._upkeep.add((known,))
        if found.left_in_todo is not None:
            self.has_read_todo, self.left_in_todo = True, set(found.left_in_todo)
        self.left_in_todo.difference_update(found.done)
        self.found += len(found.facts) + len(found.spoiled)
        ids = [facts.spool_id for facts in found.facts] + [known.message.spool_id for known in found.spoiled]
        self._names.rise_above(max(ids, default=0) >> 32)
        self._work.clean(found.cleanings)
        if areas:
            self._on_news(areas)

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)
