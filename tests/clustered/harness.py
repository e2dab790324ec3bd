"""The clustered provider on a disk in memory and a clock, for the contract suite and its own tests."""

from __future__ import annotations

import itertools
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.admin.protocol.wire import decode, decode_part, encode_part
from mailismus.config.values.settings import JournalSettings, MinFree, QueueSettings, RetrySettings, SpoolSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import ICountingPlan, IQueue, Summary
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.planned_count import PlanCounter
from mailismus.queue.providers.clustered.recovery.opened import Opened
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ACT_S, ClockWorker

T = TypeVar("T")

SEGMENT = 1 << 20


def queue_settings(*, maxsize: int = 64 << 20, largemsgsize: int = 131072, hardlinks: bool = False) -> QueueSettings:
    """Settings of a queue in `/q` and `/s`, with the smallest segments."""
    return QueueSettings(
        provider="clustered",
        rootpath="/q",
        maxclustersize=256_000,
        conf_split=23,
        maxmemoryqueue=0,
        retry=RetrySettings(maxtime_s=259_200, maxtime_reports_s=86_400, delays_s=(900.0, 1800.0)),
        minfree=MinFree(0.02, 0),
        journal=JournalSettings(segmentsize=SEGMENT, largemsgsize=largemsgsize, maxage_s=3.0, maxsize=maxsize),
        spool=SpoolSettings("/s", 16_000, 250_000, hardlinks),
    )


class ClusteredHarness:
    """Waits by letting turns of the clock go by; `DurableHarness` and `FailingHarness` of the contract suite."""

    takes_at_once = True

    def __init__(self, settings: QueueSettings | None = None) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000.0)
        self.disk = MemoryDisk()
        self.settings = settings or queue_settings()
        self._random = itertools.count(1)
        self.opened: Opened | None = None

    def open(self) -> ClusteredQueue:
        """A start over what is on the disk."""
        self.files, self.journal = files, journal = ClockWorker(self.clock), ClockWorker(self.clock)
        opened = open_queue(self.settings, self.disk, files, self.clock, self._random_bytes)
        self.opened = opened
        queue = build(
            self.settings, self.disk, opened, Workers(journal, files), self.clock, lambda: float(self.clock.seconds())
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
        counter = PlanCounter(self.disk)
        while (part := plan.next()) is not None:
            counter.add(decode_part(decode(encode_part(part))))
        return counter.summary()

    def close(self) -> None:
        pass
