"""Composition: settings become objects, objects a server. The only module that knows every class.

    settings -> disk, journal, provider -> manager -> submit, deliver, report, admin -> one `MailServer`

Whatever can refuse a start is tried in `build`, before the process goes into the background: directories, locks, the
replay of the journal, every port, the admin socket. Threads begin in `MailServer.start`, since they survive no fork.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from mailismus.admin.server.task import AdminTask
from mailismus.config.values.settings import Settings
from mailismus.deliver.hosts import Deaths
from mailismus.deliver.locator import Locator
from mailismus.deliver.task import DeliverTask, RealDeliveryContext
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadWorker, Workers
from mailismus.dns.addresses import Loopback
from mailismus.dns.choice import Fallback
from mailismus.dns.client import DnsClient
from mailismus.dns.counters import DnsCounters
from mailismus.dns.hosts import HostResolver
from mailismus.dns.mx import MxPolicy, MxResolver
from mailismus.dns.servers import NameServer
from mailismus.dns.sockets import DnsReactor
from mailismus.dns.system import SystemHosts, SystemServers, is_local_address
from mailismus.net.dispatch import shorten_dispatch
from mailismus.observe.maillog import MailLog
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from mailismus.report.task import ReportTask
from mailismus.start.observation import Observation
from mailismus.start.server import Listening, Reactor
from mailismus.submit.task import SubmitTask

FILE_THREADS = 4
"""Threads for message files and everything of the disk but the journal's barrier."""

SWITCH_INTERVAL_S = 0.0005
"""How long the interpreter lets one thread run while another waits: the journal's thread is not to wait 5 ms for a busy
reactor."""

GC_THRESHOLDS = (10_000, 10, 1000)
"""Objects made between two looks for cycles; such looks between two at those that outlived one, and at all. Nothing on a
message's path makes cycles, and what a start made stays: the interpreter's own thresholds cost a tenth of the time, for
nothing. While a backlog builds up most objects outlive some looks, and the second kind goes over all of those in one turn:
100,000 take some 20 ms."""


_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


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


def elapsed_seconds() -> float:
    """As `time.monotonic`, and counts the time that the machine is suspended, where the system tells."""
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)


class MailServer:
    """A whole server (`start.server.Server`)."""

    _log = Logger()

    def __init__(
        self,
        queue: ClusteredQueue,
        manager: QueueManager,
        threads: Sequence[ThreadWorker],
        submit: SubmitTask,
        deliver: DeliverTask,
        report: ReportTask,
        admin: AdminTask,
        locator_of: Callable[[Settings], Locator],
        observation: Observation,
        bound: Sequence[tuple[str, str, int]],
        stop_timeout_s: float,
    ) -> None:
        self._queue = queue
        self._manager = manager
        self._threads = threads
        self._submit = submit
        self._deliver = deliver
        self._report = report
        self._admin = admin
        self._locator_of = locator_of
        self._observation = observation
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
        self._observation.start()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._admin.start()
        self._deliver.start()
        self._report.start()
        self._submit.start()
        return [Listening(name, host, port) for name, host, port in self._bound]

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """As `start.server.Server`."""
        locator, deaths = self._locator_of(settings), Deaths.within(settings.queue.retry.delays_s)
        terms = self._submit.prepare(settings.listeners, settings.directory)

        def take_over() -> None:
            self._submit.reload(terms)
            self._deliver.reload(settings.deliver, settings.message_store, settings.directory, locator, deaths)
            self._report.reload(settings.report)
            self._manager.reload(settings.queue.retry, settings.queue.maxmemoryqueue)
            self._stop_timeout_s = settings.application.stop_timeout_s

        return take_over

    def stop(self) -> Deferred[None]:
        """No more mail, then no more deliveries, then the queue."""
        return Deferred.fromCoroutine(self._stop())

    def reopen_logs(self) -> None:
        """As `start.server.Server`."""
        self._observation.reopen()

    async def _stop(self) -> None:
        if not self._is_started:
            self._observation.close()
            self._submit.close()
            return
        submitted = self._submit.stop(time.monotonic() + self._stop_timeout_s)
        delivered = self._deliver.stop(time.monotonic() + self._stop_timeout_s)
        reported = self._report.stop(time.monotonic() + self._stop_timeout_s)
        await submitted
        await delivered
        await reported
        await self._queue.close()
        await self._admin.stop()
        await self._observation.stop()
        for thread in self._threads:
            thread.stop()


def build(
    settings: Settings,
    reactor: Reactor,
    maillog: MailLog,
    privileged: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> MailServer:
    """A server of these settings; ports are bound within `privileged`. Raises `ConfigError`, `StartError`; what it made is
    given up then."""
    # Timers are not to jump with the time of day: a clock set back a year would stop them for a year.
    cast(Any, reactor).seconds = time.monotonic
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    shorten_dispatch(reactor)
    clock = WallClock(reactor)
    host = settings.application.announcehost
    disk = PosixDisk()
    journal_thread = ThreadWorker(reactor, "journal")
    file_threads = ThreadWorker(reactor, "files", FILE_THREADS)
    begun_at = time.monotonic()
    opened = open_queue(settings.queue, disk, file_threads, clock, os.urandom)
    opening_s = time.monotonic() - begun_at
    try:
        # Waits are counted by the reactor's clock, which does not jump; times at rest are of day.
        timers = cast(IReactorTime, reactor)
        queue = ClusteredQueue(settings.queue, disk, opened, Workers(journal_thread, file_threads), timers, time.time)
        manager = QueueManager(
            queue,
            settings.queue.retry,
            clock,
            time.monotonic,
            maillog,
            max_out=settings.queue.maxmemoryqueue,
            salt=int.from_bytes(os.urandom(8), "big"),
            elapsed=elapsed_seconds,
        )
        submit = SubmitTask(
            host,
            settings.listeners,
            settings.directory,
            queue.max_envelope_bytes,
            manager,
            maillog,
            clock,
            reactor,
            time.monotonic,
        )
        with privileged():
            bound = submit.bind()
        observation = Observation(settings, reactor, clock, maillog, opening_s)
        try:
            observation.bind()
            admin = AdminTask(settings.admin.socket_path, manager, reactor, reactor, clock, time.monotonic)
            admin.bind()
        except BaseException:
            observation.close()
            submit.close()
            raise
    except BaseException:
        opened.release()
        raise
    world = RealDeliveryContext(reactor, clock, reactor)
    names = DnsCounters()

    def locator_of(settings: Settings) -> Locator:
        return build_locator(settings, reactor, clock, bound, names)

    audits = observation.audits
    deliver = DeliverTask(
        settings.deliver,
        settings.message_store,
        settings.directory,
        host,
        manager,
        maillog,
        world,
        locator_of(settings),
        Deaths.within(settings.queue.retry.delays_s),
        audits,
    )
    manager.on_flush(deliver.forget_deaths)
    manager.on_jump(deliver.clock_jumped)
    manager.on_stuck(deliver.local.notes)
    report = ReportTask(settings.report, host, manager, maillog, clock, time.monotonic, os.urandom, audits)
    observation.watch(queue, manager, submit, deliver, names, report)
    threads = (journal_thread, file_threads)
    return MailServer(
        queue,
        manager,
        threads,
        submit,
        deliver,
        report,
        admin,
        locator_of,
        observation,
        bound,
        settings.application.stop_timeout_s,
    )


def build_locator(
    settings: Settings,
    reactor: Reactor,
    clock: IReactorTime,
    bound: Sequence[tuple[str, str, int]],
    counters: DnsCounters,
) -> Locator:
    """Who finds the hosts of relays and domains, knowing nothing yet. `bound`: where we ourselves listen; `counters`: what
    its questions are counted in."""
    dns, client = settings.deliver.dns, settings.deliver.client
    named = tuple(NameServer(host, port) for host, port in dns.servers)
    chance = random.SystemRandom()
    servers = (lambda: named) if named else SystemServers(time.monotonic)
    # Its timers do not jump: `build` has seen to that.
    resolver = DnsClient(cast(DnsReactor, reactor), servers, dns.timeout_s, chance, time.monotonic, counters=counters)
    policy = MxPolicy(
        fallback=Fallback.ADDRESS if client.fallback_a else Fallback.NONE,
        loopback=Loopback.ALLOWED if client.loopback else Loopback.REFUSED,
        port=client.mxport,
        own_names=frozenset((settings.application.announcehost.decode("ascii").lower(),)),
        own_endpoints=frozenset((host, port) for _, host, port in bound),
        is_local=is_local_address,
    )
    hosts = HostResolver(resolver, SystemHosts(time.monotonic), chance)
    return Locator(hosts, MxResolver(resolver, policy, clock, chance), resolver.forget)
