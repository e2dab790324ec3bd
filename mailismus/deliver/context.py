"""The context of delivery: reactor, clocks, threads and chance, as it uses them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

from twisted.internet.interfaces import IReactorFromThreads, IReactorTCP, IReactorTime

from mailismus.deliver.hanging import MAX_THREADS
from mailismus.deliver.schedule.choice import PickOne
from mailismus.disk.worker import IWorker, ThreadPool


class DeliveryContext(Protocol):
    """Reactor and clocks of the task. `clock` tells UTC, `monotonic` never jumps."""

    @property
    def tcp(self) -> IReactorTCP: ...
    @property
    def clock(self) -> IReactorTime: ...
    @property
    def monotonic(self) -> Callable[[], float]: ...
    @property
    def local_workers(self) -> IWorker: ...
    @property
    def secret_workers(self) -> IWorker: ...
    @property
    def pick(self) -> PickOne: ...
    @property
    def chance(self) -> Callable[[], float]: ...


class RealDeliveryContext:
    """The context of a running server."""

    def __init__(self, tcp: IReactorTCP, clock: IReactorTime, threads: IReactorFromThreads) -> None:
        self.tcp, self.clock = tcp, clock
        self.monotonic = time.monotonic
        self.pick: PickOne = random.choice
        self.chance = random.random
        self.local_workers = ThreadPool(threads, "maildir", MAX_THREADS + 1)  # one more for the mount table
        self.secret_workers = ThreadPool(threads, "secrets", 2)
