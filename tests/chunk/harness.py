"""The one-file-a-message provider on a disk in memory and a clock, for the contract suite and its own tests."""

from __future__ import annotations

from typing import TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.chunks.generator import NameGenerator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import ICountingPlan, IQueue, Summary
from mailismus.queue.providers.chunk.assembly import build
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.recovery.opening import OpenedChunks, open_chunks
from tests.clustered.harness import queue_settings
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ACT_S, ClockWorker

T = TypeVar("T")
SPLIT = 3


def chunk_settings() -> QueueSettings:
    """Settings of a queue in `/q`."""
    return attrs.evolve(queue_settings(), provider="chunk", conf_split=SPLIT)


def is_local(recipient: bytes) -> bool:
    """Half of the recipients of most tests."""
    return recipient.endswith((b"@home.example", b"1@d.example", b"1@example.net"))


class ChunkHarness:
    """Waits by letting turns of the clock go by; `DurableHarness` and `FailingHarness` of the contract suite."""

    takes_at_once = True

    def __init__(self, *, preprocesses: bool = False, split: int = SPLIT) -> None:
        """`preprocesses`: every message is moved to S5 as soon as it is in the queue."""
        self.clock = Clock()
        self.clock.advance(1_700_000_000.0)
        self.disk = MemoryDisk()
        self.settings = chunk_settings()
        self.preprocesses, self.split = preprocesses, split
        self.waits_for_scan = True
        """A start is over when all is read."""
        self.opened: OpenedChunks | None = None
        self.queue: ChunkQueue | None = None

    def open(self) -> ChunkQueue:
        """A start over what is on the disk."""
        files, batches = ClockWorker(self.clock), ClockWorker(self.clock)
        self.opened = opened = open_chunks(self.settings, self.disk, self.split)
        queue = self.queue = build(
            *(self.settings, self.disk, opened, Workers(batches, files), self.clock, self.now, is_local),
            NameGenerator(lambda: 1),
        )
        self.wait(queue.open())
        if self.waits_for_scan:
            self.wait(queue.parts.scanning.wait())
        return queue

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
        if self.preprocesses and self.queue is not None and not self.disk.fault:
            self.queue.parts.upkeep.run()
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
        for _ in range(100):
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
        self.disk.fault = lambda act, path: OSError(5, "Input/output error") if act.startswith("sync") else None

    def mend(self, queue: IQueue) -> None:
        self.disk.fault = None
        for _ in range(20):
            self.clock.advance(1)

    def count(self, plan: ICountingPlan) -> Summary:
        raise AssertionError("this provider has no plan")

    def close(self) -> None:
        pass
