"""A queue on a disk in memory and a clock: what the harnesses of all providers share."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.queue.interface import IQueue
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ACT_S

T = TypeVar("T")

BEGIN_AT = 1_700_000_000.0
"""UTC seconds when the first queue of a harness is opened."""


class ClockHarness(ABC):
    """Waits by letting turns of the clock go by; `DurableHarness` and `FailingHarness` of the contract suite."""

    takes_at_once = True
    settles_in_s = 0.5
    """Everything that is under way ends in this time."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.clock = Clock()
        self.clock.advance(BEGIN_AT)
        self.disk = MemoryDisk() if disk is None else disk
        self._random = itertools.count(1)

    @abstractmethod
    def open(self) -> IQueue:
        """A start over what is on the disk."""

    def random_bytes(self, size: int) -> bytes:
        """The next number, in so many bytes."""
        return next(self._random).to_bytes(size, "big")

    def make(self) -> IQueue:
        return self.open()

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

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def settle_down(self) -> None:
        """Let everything that is under way end."""
        for _ in range(round(self.settles_in_s / 0.01)):
            self.clock.advance(0.01)

    def restart(self, queue: IQueue) -> IQueue:
        self.wait(queue.close())
        self.clock.calls.clear()
        return self.open()

    def crash(self, queue: IQueue) -> IQueue:
        self.clock.calls.clear()
        self.disk.power_cut()
        return self.open()

    def break_down(self, queue: IQueue) -> None:
        self.disk.fault = lambda act, path: OSError(5, "Input/output error") if act == "sync" else None

    def mend(self, queue: IQueue) -> None:
        self.disk.fault = None
        for _ in range(20):
            self.clock.advance(1)

    def close(self) -> None:
        self.clock.calls.clear()
