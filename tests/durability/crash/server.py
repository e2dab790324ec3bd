"""The server's own start over a disk in memory, with small segments: they are quick to build, and soon used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from types import ModuleType
from typing import TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

import mailismus.journal.segment as segment_module
import mailismus.queue.providers.clustered.checkpoint.write as writebehind_module
import mailismus.queue.providers.clustered.recovery.opening as opening_module
import mailismus.spool.references as references_module
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.worker import Workers
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.recovery.opening import Opened, open_queue
from tests.clustered.harness import queue_settings
from tests.durability.crash.disk import TreeDisk
from tests.fakes.worker import ACT_S, ClockWorker, MemoryWorker

T = TypeVar("T")

SEGMENT = 32768
"""Bytes of a segment: its header and seven blocks of batches."""

LARGE = 6000
"""Contents longer than this go to their silo."""

FEW_FILES = 4

BEGIN_AT = 1_700_000_000.0

RandomBytes = Callable[[int], bytes]


@cache
def settings_for(*, hardlinks: bool) -> QueueSettings:
    """A queue in `/q` and `/s`."""
    settings = queue_settings(largemsgsize=LARGE, hardlinks=hardlinks)
    return attrs.evolve(settings, journal=attrs.evolve(settings.journal, segmentsize=SEGMENT))


class _NoTable:
    """Stands for the tables of the reference cache, half the cost of a start: whoever only looks counts no references."""


@contextmanager
def _instead(name: str, value: object, *modules: ModuleType) -> Iterator[None]:
    """This name in these modules means something else meanwhile."""
    before = [(module, getattr(module, name)) for module in modules]
    for module in modules:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, was in before:
            setattr(module, name, was)


def small_segments() -> AbstractContextManager[None]:
    """What is opened here has segments of `SEGMENT` bytes."""
    return _instead("SMALLEST", SEGMENT, segment_module, opening_module)


def few_files() -> AbstractContextManager[None]:
    """Checkpoints sync the whole file system when they touch more than `FEW_FILES`."""
    return _instead("FEW_FILES", FEW_FILES, writebehind_module)


def no_tables() -> AbstractContextManager[None]:
    """What is opened here counts no references."""
    return _instead("IdTable", _NoTable, references_module)


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
        self, disk: TreeDisk, settings: QueueSettings, clock: Clock, random_bytes: RandomBytes, workers: Workers
    ) -> None:
        self.disk = disk
        self.clock = clock
        self.workers = workers
        with small_segments():
            self.opened: Opened = open_queue(settings, disk, workers.files, clock, random_bytes)
        self.queue = build(settings, disk, self.opened, workers, clock, clock.seconds)
        assert self.queue.open().called

    @property
    def is_idle(self) -> bool:
        """Nothing is under way."""
        return not any(getattr(worker, "busy", 0) for worker in (self.workers.files, self.workers.journal)) and (
            self.queue.commits.is_idle and self.queue.state.pending is None
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
            self.queue.commits.hurry()
            self.step()
            quiet = quiet + 1 if self.is_idle else 0
            if quiet == 4:
                return
        raise AssertionError("it never ends")

    def wait(self, deferred: Deferred[T]) -> T:
        """Its result."""
        results: list[T] = []
        failures: list[Failure] = []
        deferred.addCallbacks(results.append, failures.append)
        for _ in range(5000):
            if results or failures:
                break
            self.step()
        if failures:
            failures[0].raiseException()
        assert results, "it never fires"
        return results[0]


def new_clock(at: float = BEGIN_AT) -> Clock:
    """One that shows this time."""
    clock = Clock()
    clock.advance(at)
    return clock


def clock_workers(clock: Clock) -> Workers:
    """As a server has them."""
    return Workers(CountingWorker(clock), CountingWorker(clock))
