"""Composition: settings become objects, objects a server. The only module that knows every class but those of providers.

    settings -> opened queue -> manager -> submit, deliver, report, admin -> one `MailServer`

`build` finds every reason to refuse a start, before the process goes into the background: directories, locks, the replay of
the journal, every port, the admin socket. Threads begin in `MailServer.start`, since they survive no fork.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.admin.server.task import AdminTask
from mailismus.config.values.settings import QueueSettings, Settings
from mailismus.deliver.knowledge.host_sharing import SharedHosts
from mailismus.deliver.knowledge.host_snapshot import HostSnapshot
from mailismus.deliver.real_context import RealDeliveryContext
from mailismus.deliver.routes.assembly import locator_of
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.sessions.all_sessions import deaths_of
from mailismus.deliver.task import DeliverTask
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.dns.counters import DnsCounters
from mailismus.dns.sockets import DnsReactor
from mailismus.errors import StartError
from mailismus.mail.directory import DirectoryInUse
from mailismus.net.dispatch import shorten_dispatch
from mailismus.observe.maillog import MailLog, MemoryMailLog
from mailismus.providers import PROVIDERS
from mailismus.queue.acts.acts import Acts
from mailismus.queue.clock.elapsed import elapsed_seconds
from mailismus.queue.manager import QueueManager
from mailismus.queue.provider import IOpenedQueue, IProviders, IsLocal
from mailismus.report.task import ReportTask
from mailismus.sendmail.service import ProgramMail
from mailismus.start.clock import WallClock
from mailismus.start.common import Common, Salt
from mailismus.start.observation import Observation
from mailismus.start.overview import OverviewMaker
from mailismus.start.server import Listening, Reactor
from mailismus.start.version import program_version
from mailismus.submit.task import SubmitTask
from mailismus.surgery.assembly import acts_of, keep_of
from mailismus.surgery.stopped import StoppedActing
from mailismus.web.assembly import bind_web, web_task_of

if TYPE_CHECKING:
    from mailismus.web.task import WebTask

SWITCH_INTERVAL_S = 0.0005
"""How long the interpreter lets one thread run while another waits. With its own 5 ms the journal's thread would wait for a
busy reactor."""

GC_THRESHOLDS = (10_000, 10, 1000)
"""Thresholds of the garbage collector's three generations. Nothing on a message's path makes cycles, and the objects of
the start stay: with the interpreter's own thresholds the collector takes a tenth of the time, for nothing. While a backlog
builds up most objects outlive the first generation; a collection of the second walks over all of them in one turn of the
reactor: 100,000 take some 20 ms."""


@attrs.frozen
class Tasks:
    """The tasks of a server."""

    submit: SubmitTask
    deliver: DeliverTask
    report: ReportTask
    admin: AdminTask
    snapshot: HostSnapshot
    programs: ProgramMail | None
    acts: Acts | None
    """None: the queue keeps no files of its own for them."""
    web: WebTask | None = None
    """None: `<web>` is not written."""
    common: Common | None = None
    """None: one server alone has the queue."""


class MailServer:
    """A whole server (`start.server.Server`)."""

    _log = Logger()

    def __init__(
        self,
        opened: IOpenedQueue,
        manager: QueueManager,
        tasks: Tasks,
        new_locator: Callable[[Settings], Locator],
        observation: Observation,
        bound: Sequence[tuple[str, str, int]],
        stop_timeout_s: float,
        directory: DirectoryInUse,
    ) -> None:
        self._opened, self._directory = opened, directory
        self._manager = manager
        self._submit, self._deliver, self._report = tasks.submit, tasks.deliver, tasks.report
        self._admin, self._snapshot = tasks.admin, tasks.snapshot
        self._programs, self._acts, self._web, self._common = tasks.programs, tasks.acts, tasks.web, tasks.common
        self._new_locator = new_locator
        self._observation = observation
        self._bound = bound
        self._stop_timeout_s = stop_timeout_s
        self._is_started = False

    def start(self) -> Deferred[Sequence[Listening]]:
        """Start the queue, then deliveries, then the ports that take mail."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> Sequence[Listening]:
        self._is_started = True
        await self._opened.begin()
        if self._common is not None:
            await self._common.start()
        self._observation.start()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._admin.start()
        if self._web is not None:
            self._web.start()
        self._snapshot.start()
        if self._acts is not None:
            self._acts.start()
        self._deliver.start()
        self._report.start()
        self._submit.start()
        if self._programs is not None:
            self._programs.start()
        return [Listening(name, host, port) for name, host, port in self._bound]

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """As `start.server.Server`."""
        locator, deaths = self._new_locator(settings), deaths_of(settings.deliver.schedule)
        terms = self._submit.prepare(settings.listeners, settings.directory)
        adopt = self._programs.prepare(settings) if self._programs is not None else None
        web = settings.admin.web
        change_web = self._web.prepare(web) if self._web is not None and web is not None else None

        def take_over() -> None:
            self._submit.reload(terms)
            self._directory.reload(settings.directory)
            self._deliver.reload(settings.deliver, settings.message_store, settings.directory, locator, deaths)
            self._report.reload(settings.report)
            self._manager.reload(settings.queue.retry, settings.queue.maxmemoryqueue)
            self._observation.reload(settings)
            self._admin.show_settings(settings.effective)
            if adopt is not None:
                adopt()
            if change_web is not None:
                change_web()
            if self._acts is not None:
                self._acts.reload(keep_of(settings))
            self._stop_timeout_s = settings.application.stop_timeout_s

        return take_over

    def stop(self) -> Deferred[None]:
        """Stop taking mail, then deliveries, then the queue."""
        return Deferred.fromCoroutine(self._stop())

    def reopen_logs(self) -> None:
        """As `start.server.Server`."""
        self._observation.reopen()

    async def _stop(self) -> None:
        if not self._is_started:
            self._observation.close()
            self._submit.close()
            if self._web is not None:
                self._web.close()
            return
        if self._web is not None:
            await self._web.stop()
        if self._programs is not None:
            await self._programs.stop()
        acted = self._acts.stop() if self._acts is not None else succeed(None)
        submitted = self._submit.stop(time.monotonic() + self._stop_timeout_s)
        delivered = self._deliver.stop(time.monotonic() + self._stop_timeout_s)
        reported = self._report.stop(time.monotonic() + self._stop_timeout_s)
        await submitted
        await delivered
        await reported
        await self._snapshot.stop()
        if self._common is not None:
            self._common.stop()
        await acted
        await self._opened.queue.close()
        await self._admin.stop()
        await self._observation.stop()
        self._opened.end()


def build(
    settings: Settings,
    reactor: Reactor,
    maillog: MailLog,
    privileged: Callable[[], AbstractContextManager[None]] = nullcontext,
    providers: IProviders = PROVIDERS,
) -> MailServer:
    """Return a server of these settings; ports are bound and modules loaded within `privileged`. `providers`: the providers
    that can be configured. Raises `ConfigError`, `StartError`, and then releases all that it opened."""
    # Timers must not jump with the time of day: a clock set back a year would stop them for a year.
    cast(Any, reactor).seconds = time.monotonic
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    shorten_dispatch(reactor)
    clock = WallClock(reactor)
    begun_at = time.monotonic()
    directory = DirectoryInUse(settings.directory)
    with privileged():
        providers.named(settings.queue.provider).load()
    opened = open_queue(settings.queue, reactor, clock, providers, directory.is_local)
    opening_s = time.monotonic() - begun_at
    try:
        return _build(settings, reactor, clock, maillog, privileged, opened, opening_s, directory)
    except BaseException:
        opened.release()
        raise


def open_queue(
    settings: QueueSettings, reactor: Reactor, clock: IReactorTime, providers: IProviders, is_local: IsLocal
) -> IOpenedQueue:
    """Return the queue, locked and opened by its provider. Raises `StartError`."""
    try:
        provider = providers.configured(settings)
    except PermissionError:
        provider = providers.named(settings.provider)  # the provider refuses the directory too, and tells the remedy
    except OSError as error:
        raise StartError(os.EX_IOERR, f"the queue can't be opened: {error}") from error
    return provider.open(settings, reactor, clock, is_local)


def _build(
    settings: Settings,
    reactor: Reactor,
    clock: WallClock,
    maillog: MailLog,
    privileged: Callable[[], AbstractContextManager[None]],
    opened: IOpenedQueue,
    opening_s: float,
    directory: DirectoryInUse,
) -> MailServer:
    """Make the rest of the server, over an opened queue. Until it returns, the caller must release that queue."""
    host = settings.application.announcehost
    salt = Salt(os.urandom)
    manager = QueueManager(
        opened.queue,
        settings.queue.retry,
        clock,
        time.monotonic,
        maillog,
        max_out=settings.queue.maxmemoryqueue,
        salt=salt,
        elapsed=elapsed_seconds,
    )
    submit = SubmitTask(
        host,
        settings.listeners,
        settings.directory,
        opened.queue.max_envelope_bytes,
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
        admin.show_settings(settings.effective)
        admin.take_messages(lambda uid: partial(submit.new_injection, uid))
        admin.bind()
        programs = _build_programs(settings, submit, reactor, clock)
        web_port = None
        try:
            web_port = bind_web(settings)
            if programs is not None:
                programs.bind()
        except BaseException:
            admin.stop()
            if web_port is not None:
                web_port.close()
            raise
    except BaseException:
        observation.close()
        submit.close()
        raise
    names = DnsCounters()

    def new_locator(settings: Settings) -> Locator:
        return locator_of(settings, cast(DnsReactor, reactor), clock, bound, names)  # `build` has set its clock

    audits = observation.audits
    deliver = DeliverTask(
        settings.deliver,
        settings.message_store,
        settings.directory,
        host,
        manager,
        maillog,
        RealDeliveryContext(reactor, clock, reactor),
        new_locator(settings),
        deaths_of(settings.deliver.schedule),
        audits,
        None if opened.sharing is None else opened.sharing.limits,
    )
    manager.on_flush(deliver.forget_deaths, deliver.forget_deaths_of)
    manager.on_jump(deliver.clock_jumped)
    manager.on_explain(partial(deliver.explanations, opened.sharing))
    report = ReportTask(settings.report, host, manager, maillog, clock, time.monotonic, os.urandom, audits)
    observation.watch(opened, manager, submit, deliver, names, report)
    told = host.decode("ascii", "replace"), program_version()
    overviews = OverviewMaker(observation.readers, deliver, *told, clock.seconds, time.monotonic)
    admin.show_overviews(overviews)
    admin.show_habits(deliver.habits)
    state = ThreadPool(reactor, "state")
    snapshot = HostSnapshot(deliver.hosts, opened.state_path, PosixDisk(), state, clock, time.monotonic)
    snapshot.load()
    acts = acts_of(settings, opened, manager, reactor, reactor)
    if acts is not None:
        admin.take_acts(acts)
    web = web_task_of(web_port, opened, manager, overviews, reactor, reactor, clock)
    common = _build_common(settings, opened, salt, deliver, reactor, clock)
    tasks = Tasks(submit, deliver, report, admin, snapshot, programs, acts, web, common)
    stop_timeout_s = settings.application.stop_timeout_s
    return MailServer(opened, manager, tasks, new_locator, observation, bound, stop_timeout_s, directory)


def _build_common(
    settings: Settings, opened: IOpenedQueue, salt: Salt, deliver: DeliverTask, reactor: Reactor, clock: IReactorTime
) -> Common | None:
    """Make what servers of a shared queue have in common; None: one server alone has it."""
    if opened.sharing is None:
        return None
    has_mailboxes = settings.message_store.lmtp is None and bool(settings.directory.domains)
    keep_s = deaths_of(settings.deliver.schedule).forget_s
    return Common(
        opened.sharing,
        salt,
        ThreadPool(reactor, "proof"),
        PosixDisk(),
        settings.message_store.userpath if has_mailboxes else None,
        SharedHosts(deliver.hosts, opened.sharing, clock, time.monotonic, keep_s),
    )


def _build_programs(settings: Settings, submit: SubmitTask, reactor: Reactor, clock: IReactorTime) -> ProgramMail | None:
    """Make what takes the messages of programs; None: `<sendmail>` is not written."""
    if settings.sendmail is None:
        return None
    return ProgramMail(
        settings,
        settings.sendmail,
        lambda uid: partial(submit.new_injection, uid),
        lambda uid: partial(submit.new_later_injection, uid),
        reactor,
        reactor,
        clock,
        ThreadPool(reactor, "drop"),
    )


def open_for_acts(settings: Settings, reactor: Reactor, providers: IProviders) -> StoppedActing:
    """Open a stopped queue for acts of administrators, under its locks. Raises `StartError`."""
    cast(Any, reactor).seconds = time.monotonic
    clock = WallClock(reactor)
    opened = open_queue(settings.queue, reactor, clock, providers, DirectoryInUse(settings.directory).is_local)
    try:
        retry, salt = settings.queue.retry, Salt(os.urandom)
        manager = QueueManager(opened.queue, retry, clock, time.monotonic, MemoryMailLog(), salt=salt)
        return StoppedActing(opened, manager, acts_of(settings, opened, manager, reactor, reactor))
    except BaseException:
        opened.release()
        raise
