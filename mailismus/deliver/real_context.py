"""The context of delivery in a running server."""

from __future__ import annotations

import random
import time

from twisted.internet.interfaces import IReactorFromThreads, IReactorTCP, IReactorTime

from mailismus.deliver.local.hanging import MAX_THREADS
from mailismus.deliver.schedule.choice import PickOne
from mailismus.disk.worker import ThreadPool


class RealDeliveryContext:
    """Reactor, clocks, threads and chance, as they are."""

    def __init__(self, tcp: IReactorTCP, clock: IReactorTime, threads: IReactorFromThreads) -> None:
        self.tcp, self.clock = tcp, clock
        self.monotonic = time.monotonic
        self.pick: PickOne = random.choice
        self.chance = random.random
        self.local_workers = ThreadPool(threads, "maildir", MAX_THREADS + 1)  # one more for the mount table
        self.secret_workers = ThreadPool(threads, "secrets", 2)
