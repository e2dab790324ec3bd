"""Adoption: messages that writers in other processes commit become messages of this running queue.

    signal, or once a second -> a look between two batches -> the index, as if they had been found at a start

*Rules*: a signal only makes it sooner. A number that is not ours by what is known in memory is read; what can't be read, is
a second copy, or has what another writer never makes, stays as it is until a start, and is told once. Nothing is looked for
before the scan of this start has read todo; what it has yet to take of that is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.queue.providers.chunk.control.ledger import ChunkLedger
from mailismus.queue.providers.chunk.control.requests import ChunkRequests
from mailismus.queue.providers.chunk.control.scanning import ChunkScanning
from mailismus.queue.providers.chunk.control.upkeep import ChunkUpkeep
from mailismus.queue.providers.chunk.control.work import ChunkWork
from mailismus.queue.providers.chunk.format.version import INTD
from mailismus.queue.providers.chunk.recovery.found import FoundChunk
from mailismus.queue.providers.chunk.recovery.found_new import FoundBeside, look_beside
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

INTERVAL_S = 1.0
"""Seconds after which a message is found whose signal was lost."""
SWEEP_S = 10.0
"""Seconds between two searches for what killed writers left."""


class ChunkAdoption:
    """Looks for messages of other writers; `BetweenBatches` of the work."""

    _log = Logger()

    def __init__(
        self,
        directories: ChunkDirectories,
        ledger: ChunkLedger,
        requests: ChunkRequests,
        upkeep: ChunkUpkeep,
        work: ChunkWork,
        scanning: ChunkScanning,
        reactor: IReactorTime,
    ) -> None:
        self._directories, self._ledger, self._requests, self._upkeep = directories, ledger, requests, upkeep
        self._work, self._scanning, self._reactor = work, scanning, reactor
        self._passed_over: set[int] = set()
        self._timer: IDelayedCall | None = None
        self._sweeps_at = reactor.seconds()
        self._is_stopped = self._is_failing = False
        self.adopted = self.removed = 0
        """Messages of other writers, and those that a killed one left unfinished."""

    def start(self) -> None:
        """Begin, as soon as the scan allows it."""
        self._timer = self._reactor.callLater(INTERVAL_S, self._tick)

    def stop(self) -> None:
        """Look no more."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def look(self) -> None:
        """Look soon: a writer gave a signal."""
        if not self._is_stopped and self._scanning.has_read_todo:
            self._work.add_between(self)

    def _tick(self) -> None:
        self._timer = self._reactor.callLater(INTERVAL_S, self._tick)
        self.look()

    def prepare(self) -> Callable[[], FoundBeside]:
        ours = self._ledger.new_numbers | self._requests.committed | self._work.cleaning_numbers()
        ours |= self._scanning.left_in_todo
        sweeps = self._reactor.seconds() >= self._sweeps_at
        if sweeps:
            self._sweeps_at = self._reactor.seconds() + SWEEP_S
        passed_over = frozenset(self._passed_over)
        return partial(look_beside, self._directories, self._scanning.born, ours, passed_over, sweeps=sweeps)

    def end(self, found: FoundBeside) -> None:
        """Take what a look found."""
        if found.error is not None:
            if not self._is_failing:
                self._log.error("New messages of other programs can't be looked for: {error}", error=found.error)
            self._is_failing = True
            return
        self._is_failing = False
        self._passed_over &= set(found.in_todo)
        for one in found.messages:
            self._adopt(one)
        self.removed += found.removed
        if found.removed:
            self._log.info("Removed {count} messages that no program finished.", count=found.removed)
        if found.has_more:
            self.look()

    def _adopt(self, found: FoundChunk) -> None:
        known = found.known
        for problem in found.problems:
            self._log.error("{path}: {text}.", path=problem.path, text=problem.text)
        is_copy = known is not None and self._ledger.has(known.message.spool_id)
        is_strange = bool(found.problems or found.ended or set(found.leftovers) - {INTD})
        if known is None or is_strange or is_copy:
            self._passed_over.add(found.number)
            what = "is a second copy of a message" if is_copy else "can't be taken"
            self._log.error("Number {number} in todo {what}: it stays until a start.", number=found.number, what=what)
            return
        if self._ledger.add(known):
            self._upkeep.add([known])
        self._work.came.update(entry.area for entry in known.entries.values())
        self.adopted += 1
