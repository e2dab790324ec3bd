"""The log-structured provider on a disk in memory and a clock, for the contract suite and its own tests."""

from __future__ import annotations

import attrs

from mailismus.admin.protocol.wire import decode, decode_part, encode_part
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import ICountingPlan, Summary
from mailismus.queue.providers.log.assembly import build
from mailismus.queue.providers.log.control.choices import DEFAULT_CHOICES
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.planned_count import LogPlanCounter
from mailismus.queue.providers.log.recovery.opening import OpenedLog, open_queue
from tests.clustered.harness import queue_settings
from tests.fakes.clock_harness import ClockHarness
from tests.fakes.worker import ClockWorker


def log_settings(*, largemsgsize: int = 131072, segmentsize: int = 1 << 20) -> QueueSettings:
    """Settings of a queue in `/q` and `/s`, with the smallest segments."""
    settings = queue_settings(largemsgsize=largemsgsize)
    return attrs.evolve(settings, provider="log", journal=attrs.evolve(settings.journal, segmentsize=segmentsize))


class LogHarness(ClockHarness):
    """The log-structured provider."""

    def __init__(self, settings: QueueSettings | None = None, *, takes_at_once: bool = True) -> None:
        super().__init__()
        self.takes_at_once = takes_at_once
        self.settings = settings or log_settings()
        self.opened: OpenedLog | None = None
        self.choices = DEFAULT_CHOICES

    def open(self) -> LogQueue:
        """A start over what is on the disk."""
        files, journal = ClockWorker(self.clock), ClockWorker(self.clock)
        opened = open_queue(self.settings, self.disk, files, self.clock, self.random_bytes)
        self.opened = opened
        workers = Workers(journal, files)
        queue = build(
            *(self.settings, self.disk, opened, workers, self.clock, self.now),
            choices=self.choices,
        )
        self.wait(queue.open())
        return queue

    def round(self, queue: LogQueue) -> None:
        """A round of marks, from its beginning to its end."""
        rounds = queue.rounds.rounds
        queue.rounds.run()
        self.settle_down()
        assert queue.rounds.rounds > rounds

    def count(self, plan: ICountingPlan) -> Summary:
        counter = LogPlanCounter(self.disk)
        while (part := plan.next()) is not None:
            counter.add(decode_part(decode(encode_part(part))))
        return counter.summary()
