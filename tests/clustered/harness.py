"""The clustered provider on a disk in memory and a clock, for the contract suite and its own tests."""

from __future__ import annotations

from mailismus.admin.protocol.wire import decode, decode_part, encode_part
from mailismus.config.values.settings import JournalSettings, MinFree, QueueSettings, RetrySettings, SpoolSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import ICountingPlan, Summary
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.planned_count import PlanCounter
from mailismus.queue.providers.clustered.recovery.opened import Opened
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from tests.fakes.clock_harness import ClockHarness
from tests.fakes.worker import ClockWorker

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


class ClusteredHarness(ClockHarness):
    """The clustered provider."""

    def __init__(self, settings: QueueSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or queue_settings()
        self.opened: Opened | None = None

    def open(self) -> ClusteredQueue:
        """A start over what is on the disk."""
        self.files, self.journal = files, journal = ClockWorker(self.clock), ClockWorker(self.clock)
        opened = open_queue(self.settings, self.disk, files, self.clock, self.random_bytes)
        self.opened = opened
        queue = build(self.settings, self.disk, opened, Workers(journal, files), self.clock, self.now)
        self.wait(queue.open())
        return queue

    def count(self, plan: ICountingPlan) -> Summary:
        counter = PlanCounter(self.disk)
        while (part := plan.next()) is not None:
            counter.add(decode_part(decode(encode_part(part))))
        return counter.summary()
