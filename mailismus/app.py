"""Composition: settings become objects, objects a server. The only module that knows every class.

    settings -> disk, journal, provider -> manager -> submit, deliver, admin -> one `MailServer`

Whatever can refuse a start is tried in `build`, before the process goes into the background: directories, locks, the
replay of the journal, every port, the admin socket. Threads begin in `MailServer.start`, since they survive no fork.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from mailismus.admin.socket import AdminTask
from mailismus.config.settings import Settings
from mailismus.deliver.task import DeliverTask, RealSurroundings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadWorker, Workers
from mailismus.net.dispatch import shorten_dispatch
from mailismus.observe.maillog import MailLog
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.clustered.opening import open_queue
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.start.server import Listening, Reactor
from mailismus.submit.task import SubmitTask

FILE_THREADS = 4
"""Threads for message files and everything of the disk but the journal's barrier."""

SWITCH_INTERVAL_S = 0.0005
"""How long the interpreter lets one thread run while another waits: the journal's thread is not to wait 5 ms for a busy
reactor."""

GC_THRESHOLDS = (50_000, 20, 100)
"""Objects made between two looks for cycles. Nothing on a message's path makes cycles, and what a start made stays: the
interpreter's own thresholds cost a tenth of the time, for nothing."""


@implementer(IReactorTime)
class WallClock:
    """The reactor's timers, which never jump, beside the time of day, which may."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor

    def seconds(self) -> float:
        """UTC seconds."""
        return time.time()

    # `callable` is Twisted's name for it.
    def callLater(self, delay: float, callable: Callable[..., Any], *args: object, **kw: object) -> IDelayedCall:  # noqa: A002
        """The reactor's. Its calls tell their time by the reactor's clock, not by ours."""
        return self._reactor.callLater(delay, callable, *args, **kw)

    def getDelayedCalls(self) -> Sequence[IDelayedCall]:
        """The reactor's."""
        return self._reactor.getDelayedCalls()


class MailServer:
    """A whole server (`start.server.Server`)."""

    _log = Logger()

    def __init__(
        self,
        queue: ClusteredQueue,
        threads: Sequence[ThreadWorker],
        submit: SubmitTask,
        deliver: DeliverTask,
        admin: AdminTask,
        bound: Sequence[tuple[str, str, int]],
        stop_timeout_s: float,
    ) -> None:
        self._queue = queue
        self._threads = threads
        self._submit = submit
        self._deliver = deliver
        self._admin = admin
        self._bound = bound
        self._stop_timeout_s = stop_timeout_s
        self._is_started = False

    def start(self) -> Deferred[Sequence[Listening]]:
        """Threads first, then the queue, then who delivers, at last who takes mail."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> Sequence[Listening]:
        self._is_started = True
        for thread in self._threads:
            thread.start()
        await self._queue.open()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._admin.start()
        self._deliver.start()
        self._submit.start()
        return [Listening(name, host, port) for name, host, port in self._bound]

    def stop(self) -> Deferred[None]:
        """No more mail, then no more deliveries, then the queue."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        if not self._is_started:
            self._submit.close()
            return
        submitted = self._submit.stop(time.time() + self._stop_timeout_s)
        delivered = self._deliver.stop(time.monotonic() + self._stop_timeout_s)
        await submitted
        await delivered
        await self._queue.close()
        await self._admin.stop()
        for thread in self._threads:
            thread.stop()


def build(settings: Settings, reactor: Reactor, maillog: MailLog) -> MailServer:
    """A server of these settings. Raises `ConfigError`, `StartError`; what it made is given up then."""
    # Timers are not to jump with the time of day: a clock set back a year would stop them for a year.
    cast(Any, reactor).seconds = time.monotonic
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    shorten_dispatch(reactor)
    clock = WallClock(reactor)
    host = settings.application.announcehost
    disk = PosixDisk()
    journal_thread = ThreadWorker(reactor, "journal")
    file_threads = ThreadWorker(reactor, "files", FILE_THREADS)
    opened = open_queue(settings.queue, disk, file_threads, clock, os.urandom)
    try:
        queue = ClusteredQueue(settings.queue, disk, opened, Workers(journal_thread, file_threads), clock, time.time)
        manager = QueueManager(
            queue,
            settings.queue.retry,
            clock,
            time.monotonic,
            maillog,
            max_out=settings.queue.maxmemoryqueue,
            salt=int.from_bytes(os.urandom(8), "big"),
        )
        submit = SubmitTask(
            host, settings.listeners, settings.directory, queue.max_envelope_bytes, manager, maillog, clock, reactor
        )
        bound = submit.bind()
        try:
            admin = AdminTask(settings.admin.socket_path, manager, reactor, reactor, clock)
            admin.bind()
        except BaseException:
            submit.close()
            raise
    except BaseException:
        opened.release()
        raise
    world = RealSurroundings(reactor, clock, reactor)
    deliver = DeliverTask(settings.deliver, settings.message_store, settings.directory, host, manager, maillog, world)
    threads = (journal_thread, file_threads)
    return MailServer(queue, threads, submit, deliver, admin, bound, settings.application.stop_timeout_s)
