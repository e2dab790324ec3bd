"""The one-file-a-message provider on a disk in memory and a clock, for the contract suite and its own tests."""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred

from mailismus.chunks.generator import NameGenerator
from mailismus.config.values.settings import QueueSettings
from mailismus.queue.interface import ICountingPlan, IQueue, Summary
from mailismus.queue.providers.chunk.assembly import build
from mailismus.queue.providers.chunk.control.workers import ChunkWorkers
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.recovery.opening import OpenedChunks, open_chunks
from tests.clustered.harness import queue_settings
from tests.fakes.clock_harness import ClockHarness, T
from tests.fakes.worker import ClockWorker

SPLIT = 3


def chunk_settings() -> QueueSettings:
    """Settings of a queue in `/q`."""
    return attrs.evolve(queue_settings(), provider="chunk", conf_split=SPLIT)


def is_local(recipient: bytes) -> bool:
    """Half of the recipients of most tests."""
    return recipient.endswith((b"@home.example", b"1@d.example", b"1@example.net"))


class ChunkHarness(ClockHarness):
    """The one-file-a-message provider."""

    settles_in_s = 1.0

    def __init__(self, *, preprocesses: bool = False, split: int = SPLIT) -> None:
        """`preprocesses`: every message is moved to S5 as soon as it is in the queue."""
        super().__init__()
        self.settings = chunk_settings()
        self.preprocesses, self.split = preprocesses, split
        self.waits_for_scan = True
        """A start is over when all is read."""
        self.batches, self.ends, self.files = (ClockWorker(self.clock) for _ in range(3))
        """Of the queue that is open."""
        self.opened: OpenedChunks | None = None
        self.queue: ChunkQueue | None = None

    def open(self) -> ChunkQueue:
        """A start over what is on the disk."""
        batches, ends, files = self.batches, self.ends, self.files = [ClockWorker(self.clock) for _ in range(3)]
        self.opened = opened = open_chunks(self.settings, self.disk, self.split)
        queue = self.queue = build(
            *(self.settings, self.disk, opened, ChunkWorkers(batches, ends, files), self.clock, self.now, is_local),
            NameGenerator(lambda: 1),
        )
        self.wait(queue.open())
        if self.waits_for_scan:
            self.wait(queue.parts.scanning.wait())
        return queue

    def wait(self, deferred: Deferred[T]) -> T:
        try:
            return super().wait(deferred)
        finally:
            if self.preprocesses and self.queue is not None and not self.disk.fault:
                self.queue.parts.upkeep.run()

    def break_down(self, queue: IQueue) -> None:
        self.disk.fault = lambda act, path: OSError(5, "Input/output error") if act.startswith("sync") else None

    def count(self, plan: ICountingPlan) -> Summary:
        raise AssertionError("this provider has no plan")
