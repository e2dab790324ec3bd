"""The shared queue of a server: its own directory locked, the clients of the services made, nothing asked yet."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Sequence
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.observe.metrics import Reader, meter
from mailismus.queue.clock.elapsed import elapsed_seconds
from mailismus.queue.providers.distributed.assembly import ServerTerms, build
from mailismus.queue.providers.distributed.clients import make_clients
from mailismus.queue.providers.distributed.format.version import STATE
from mailismus.queue.providers.distributed.metrics import METRICS, DistributedFigures
from mailismus.queue.providers.distributed.opening import OwnPlace, open_place
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.queue.reactor import QueueReactor
from mailismus.queue.sharing import ISharing
from mailismus.queue.throttle import ACT_SHARE

DRIVER_THREADS = 2
"""For calls of the database's driver that block: to connect, to prepare a statement."""


def open_distributed_queue(settings: QueueSettings, reactor: QueueReactor) -> OpenedSharedQueue:
    """Lock the server's directory, and make the queue. Raises `StartError`."""
    assert settings.services is not None, "a shared queue has services"
    threads = ThreadPool(reactor, "cassandra", DRIVER_THREADS)
    timers = cast(IReactorTime, reactor)
    clients = make_clients(settings.services, timers, threads, time.time)
    bits = random.SystemRandom().getrandbits
    place = open_place(PosixDisk(), settings.rootpath, socket.gethostname(), bits)
    try:
        queue = build(clients.stores, timers, _terms(settings.services, place.name))
    except BaseException:
        place.lock.release()
        raise
    return OpenedSharedQueue(queue, threads, place, settings.rootpath)


def _terms(settings: ServicesSettings, name: str) -> ServerTerms:
    view = settings.view
    return ServerTerms(
        name=name,
        view=ViewSettings(view.slicewindow_s, view.bucketcount, view.updatebrowsestartpace),
        keep_s=view.keep_s,
        prefetch=settings.rabbitmq.prefetch,
        now=time.time,
        elapsed=elapsed_seconds,
        random_bits=random.SystemRandom().getrandbits,
        chance=random.random,
        wants_sizes=view.sizemetrics,
    )


class OpenedSharedQueue:
    """`IOpenedQueue`."""

    def __init__(self, queue: DistributedQueue, threads: ThreadPool, place: OwnPlace, rootpath: str) -> None:
        self.queue, self.figures = queue, DistributedFigures(queue)
        self.state_path: str | None = os.path.join(rootpath, STATE)
        self.sharing: ISharing | None = queue.parts.sharing
        self.act_share = ACT_SHARE
        self._threads, self._place = threads, place
        self._metrics = meter(METRICS, queue)

    def metrics(self) -> Sequence[Reader]:
        return self._metrics

    def begin(self) -> Deferred[None]:
        self._threads.start()
        return self.queue.open()

    def end(self) -> None:
        self._threads.stop()
        self.release()

    def release(self) -> None:
        self._place.lock.release()
