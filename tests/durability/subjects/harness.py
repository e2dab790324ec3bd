"""A provider under proof on a disk in memory and a clock: started, waited for, stopped."""

from __future__ import annotations

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from mailismus.queue.interface import IQueue
from tests.durability.subjects.interface import RunningSubject, Subject
from tests.fakes.clock_harness import ClockHarness
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ClockWorker


class SubjectHarness(ClockHarness):
    """A provider under proof."""

    def __init__(self, subject: Subject, settings: QueueSettings, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.subject, self.settings = subject, settings
        self.running: RunningSubject | None = None

    def open(self) -> IQueue:
        """A start over what is on the disk. Raises `StartError`."""
        workers = Workers(ClockWorker(self.clock), ClockWorker(self.clock))
        running = self.subject.start(self.disk, self.settings, self.clock, self.random_bytes, workers)
        self.running = running
        self.wait(running.queue.open())
        return running.queue
