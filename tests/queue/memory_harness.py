"""The in-memory provider on a clock of its own, for the contract suite."""

from __future__ import annotations

from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.interface import ICountingPlan, IQueue, Summary
from mailismus.queue.providers.memory import MemoryQueue
from tests.fakes.waiting import result_of

T = TypeVar("T")


class MemoryHarness:
    """Waits by letting turns of the clock go by."""

    takes_at_once = True

    def __init__(self, pause_bytes: int = 0) -> None:
        self.clock = Clock()
        self.clock.advance(1_000_000.0)
        self._pause_bytes = pause_bytes

    def make(self) -> MemoryQueue:
        return MemoryQueue(self.clock, pause_bytes=self._pause_bytes)

    def wait(self, deferred: Deferred[T]) -> T:
        return result_of(deferred, lambda: self.clock.advance(0), 100)

    def now(self) -> float:
        return self.clock.seconds()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def break_down(self, queue: IQueue) -> None:
        assert isinstance(queue, MemoryQueue)
        queue.break_down()

    def mend(self, queue: IQueue) -> None:
        assert isinstance(queue, MemoryQueue)
        queue.mend()

    def count(self, plan: ICountingPlan) -> Summary:
        raise AssertionError("nobody else can count this queue")

    def close(self) -> None:
        pass
