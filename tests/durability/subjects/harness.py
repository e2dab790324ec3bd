"""A provider under proof on a disk in memory and a clock: started, waited for, stopped."""

from __future__ import annotations

import itertools
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import IQueue
from tests.durability.subjects.interface import RunningSubject, Subject
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ACT_S, ClockWorker

T = TypeVar("T")

BEGIN_AT = 1_700_000_000.0


class SubjectHarness:
    """Waits by letting turns of the clock go by."""

    def __init__(self, subject: Subject, settings: QueueSettings, disk: MemoryDisk) -> None:
        self.subject, self.settings, self.disk = subject, settings, disk
        self.clock = Clock()
        self.clock.advance(BEGIN_AT)
        self.running: RunningSubject | None = None
        self._random = itertools.count(1)

    def open(self) -> IQueue:
        """A start over what is on the disk. Raises `StartError`."""
        workers = Workers(ClockWorker(self.clock), ClockWorker(self.clock))
        running = self.subject.start(self.disk, self.settings, self.clock, self._random_bytes, workers)
        self.running = running
        self.wait(running.queue.open())
        return running.queue

    def _random_bytes(self, size: int) -> bytes:
        return next(self._random).to_bytes(size, "big")

    def wait(self, deferred: Deferred[T]) -> T:
        """Its result, or its failure raised."""
        results: list[T] = []
        failures: list[Failure] = []
        deferred.addCallbacks(results.append, failures.append)
        for turn in range(1000):
            if results or failures:
                break
            self.clock.advance(ACT_S if turn < 20 else 0.01)
        if failures:
            failures[0].raiseException()
        assert results, "it never fires"
        return results[0]

    def now(self) -> float:
        """UTC seconds."""
        return float(self.clock.seconds())
