"""Surroundings of a simulated delivery task: its context, a mail log that keeps nothing, and what notices its failures."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogPublisher
from zope.interface import implementer

from mailismus.deliver.local.hanging import MAX_THREADS
from mailismus.deliver.schedule.choice import PickOne
from mailismus.plan.clock import VirtualClock
from mailismus.plan.names import Maildirs
from mailismus.plan.network import Network

LOCAL_S = 0.004
"""A delivery into a maildir, with its barriers."""


class SimulatedContext:
    """The `DeliveryContext` of a run: chance by a seed."""

    def __init__(self, clock: VirtualClock, network: Network, seed: int) -> None:
        chance = random.Random(seed)
        self.clock: Any = clock
        self.tcp: Any = network
        self.monotonic: Callable[[], float] = clock.seconds
        self.local_workers: Any = Maildirs(clock, LOCAL_S, MAX_THREADS + 1)
        self.secret_workers: Any = self.local_workers
        self.pick: PickOne = chance.choice
        self.chance: Callable[[], float] = chance.random


class NoLog:
    """A mail log that keeps nothing."""

    def write(self, line: bytes) -> None:
        """Nothing."""

    def write_lines(self, lines: object) -> None:
        """Nothing."""


@implementer(ILogObserver)
class TaskFaults:
    """Failures that the delivery task logs."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []

    def __call__(self, event: LogEvent) -> None:
        if event.get("log_level") is LogLevel.critical:
            self.events.append(event)


@contextmanager
def watched_task() -> Iterator[TaskFaults]:
    """Notice failures while a simulation runs, and collect garbage seldom: what the task makes has few cycles, and all that
    waits is much to look through. Raises `RuntimeError` behind it for the first failure."""
    faults = TaskFaults()
    globalLogPublisher.addObserver(faults)
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield faults
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        globalLogPublisher.removeObserver(faults)
    if faults.events:
        raise RuntimeError(f"the delivery task failed: {faults.events[0]}")
