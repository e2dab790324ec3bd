"""The log-structured provider on a disk in memory and a clock, for the contract suite and its own tests."""

from __future__ import annotations

import itertools
from typing import TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.admin.protocol.wire import decode, decode_part, encode_part
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import ICountingPlan, IQueue, Summary
from mailismus.queue.providers.log.assembly import build
from mailismus.queue.providers.log.control.choices import DEFAULT_CHOICES
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.planned_count import LogPlanCounter
from mailismus.queue.providers.log.recovery.opening import OpenedLog, open_queue
from tests.clustered.harness import queue_settings
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ACT_S, ClockWorker

T = TypeVar("T")


def log_settings(*, largemsgsize: int = 131072, segmentsize: int = 1 << 20) -> QueueSettings:
    """Settings of a queue in `/q` and `/s`, with the smallest segments."""
    settings = queue_settings(largemsgsize=largemsgsize)
    return attrs.evolve(settings, provider="log", journal=attrs.evolve(settings.journal, segmentsize=segmentsize))


class LogHarness:
    """Waits by letting turns of the clock go by; `DurableHarness` and `FailingHarness` of the contract suite."""

    def __init__(self, settings: QueueSettings | None = None, *, takes_at_once: bool = True) -> None:
        self.takes_at_once = takes_at_once
        self.clock = Clock()
        self.clock.advance(1_700_000_000.0)
        self.disk = MemoryDisk()
        self.settings = settings or log_settings()
        self._random = itertools.count(1)
        self.opened: OpenedLog | None = None
        self.choices = DEFAULT_CHOICES

    def open(self) -> LogQueue:
        """A start over what is on the disk."""
        files, journal = ClockWorker(self.clock), ClockWorker(self.clock)
        opened = open_queue(self.settings, self.disk, files, self.clock, self._random_bytes)
        self.opened = opened
        workers = Workers(journal, files)
        queue = build(
            *(self.settings, self.disk, opened, workers, self.clock, lambda: float(self.clock.seconds())),
            choices=self.choices,
        )
        self.wait(queue.open())
        return queue

    def _random_bytes(self, size: int) -> bytes:
        return next(self._random).to_bytes(size, "big")

    def make(self) -> IQueue:
        return self.open()

    def wait(self, deferred: Deferred[T]) -> T:
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
        return float(self.clock.seconds())

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def settle_down(self) -> None:
        """Let everything that is under way end."""
        for _ in range(50):
            self.clock.advance(0.01)

    def round(self, queue: LogQueue) -> None:
        """A round of marks, from its beginning to its end."""
        rounds = queue.rounds.rounds
        queue.rounds.run()
        self.settle_down()
        assert queue.rounds.rounds > rounds

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

    def count(self, plan: ICountingPlan) -> Summary:
        counter = LogPlanCounter(self.disk)
        while (part := plan.next()) is not None:
            counter.add(decode_part(decode(encode_part(part))))
        return counter.summary()

    def close(self) -> None:
        pass
