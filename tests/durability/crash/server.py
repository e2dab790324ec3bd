"""The server's own start over a disk in memory, for any provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from tests.durability.crash.disk import TreeDisk
from tests.durability.subjects.interface import RandomBytes, Subject
from tests.fakes.waiting import result_of
from tests.fakes.worker import ACT_S, ClockWorker, MemoryWorker

T = TypeVar("T")

BEGIN_AT = 1_700_000_000.0


class LookingWorker(MemoryWorker):
    """`IWorker` for code that only looks: runs calls at once; what is handed over before, to be done in the background, is
    never done."""

    def __init__(self) -> None:
        super().__init__(is_prompt=True)
        self.is_looking = False

    def begin(self, act: Callable[[], None], name: str) -> None:
        if self.is_looking:
            act()


class CountingWorker(ClockWorker):
    """`IWorker` on a clock that tells whether something is under way."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.busy = 0

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        self.busy += 1
        return super().run(function).addBoth(self._has_run)

    def _has_run(self, result: T) -> T:
        self.busy -= 1
        return result


class Server:
    """A start: the queue over what is on the disk, open."""

    def __init__(
        self,
        subject: Subject,
        disk: TreeDisk,
        settings: QueueSettings,
        clock: Clock,
        random_bytes: RandomBytes,
        workers: Workers,
    ) -> None:
        self.disk = disk
        self.clock = clock
        self.workers = workers
        self.running = subject.start(disk, settings, clock, random_bytes, workers)
        self.queue = self.running.queue
        assert self.queue.open().called

    @property
    def is_idle(self) -> bool:
        """Nothing is under way."""
        return (
            not any(getattr(worker, "busy", 0) for worker in (self.workers.files, self.workers.journal))
            and self.running.is_idle
        )

    def step(self) -> None:
        """One act of a worker, or the turn that learns of it."""
        self.clock.advance(ACT_S)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Steps until it is so."""
        for _ in range(5000):
            if is_so():
                return
            self.step()
        raise AssertionError("it never comes to that")

    def settle_down(self) -> None:
        """Let everything that is under way end. Hardly any time passes."""
        quiet = 0
        for _ in range(5000):
            self.running.hurry()
            self.step()
            quiet = quiet + 1 if self.is_idle else 0
            if quiet == 4:
                return
        raise AssertionError("it never ends")

    def wait(self, deferred: Deferred[T]) -> T:
        """Its result."""
        return result_of(deferred, self.step, 5000)


def new_clock(at: float = BEGIN_AT) -> Clock:
    """One that shows this time."""
    clock = Clock()
    clock.advance(at)
    return clock


def clock_workers(clock: Clock) -> Workers:
    """As a server has them."""
    return Workers(CountingWorker(clock), CountingWorker(clock))
