"""The service: from the start of the reactor to the end of the process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import cast

import attrs
from twisted.application.service import Application
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from mailismus.config.values.settings import Settings
from mailismus.errors import ConfigError, StartError
from mailismus.observe.maillog import MemoryMailLog
from mailismus.start.logfile import Log, LogDestination
from mailismus.start.notify import Notifier
from mailismus.start.output import Output
from mailismus.start.server import Listening, Reactor
from mailismus.start.service import MailismusService
from mailismus.start.signals import Signals


@attrs.define
class FakeServer:
    """A server whose start and stop end when a test says so."""

    started: Deferred[Sequence[Listening]] = attrs.Factory(Deferred)
    stopped: Deferred[None] = attrs.Factory(Deferred)
    calls: list[str] = attrs.Factory(list)

    def start(self) -> Deferred[Sequence[Listening]]:
        self.calls.append("start")
        return self.started

    def reopen_logs(self) -> None:
        self.calls.append("reopen")

    def stop(self) -> Deferred[None]:
        self.calls.append("stop")
        return self.stopped

    def prepare(self, settings: Settings) -> Callable[[], None]:
        raise AssertionError


@attrs.define
class FakeReloader:
    """Reloads that are over when a test says so."""

    asked: int = 0
    over: list[Deferred[None]] = attrs.Factory(list)
    is_stopped: bool = False

    def reload(self) -> Deferred[None] | None:
        self.asked += 1
        if self.over and not self.over[-1].called:
            return None
        self.over.append(Deferred())
        return self.over[-1]

    def stop(self) -> None:
        self.is_stopped = True


class FakeNotifier(Notifier):
    """What the service manager would be told."""

    def __init__(self) -> None:
        super().__init__(Clock(), {})
        self.told: list[str] = []

    def ready(self, status: str) -> None:
        self.told.append("ready")

    def reloading(self, monotonic_s: float) -> None:
        self.told.append("reloading")

    def stopping(self) -> None:
        self.told.append("stopping")


@attrs.define
class Bench:
    server: FakeServer = attrs.Factory(FakeServer)
    reactor: MemoryReactorClock = attrs.Factory(MemoryReactorClock)
    maillog: MemoryMailLog = attrs.Factory(MemoryMailLog)
    ended: list[int] = attrs.Factory(list)
    reloader: FakeReloader = attrs.Factory(FakeReloader)
    notifier: FakeNotifier = attrs.Factory(FakeNotifier)
    signals: Signals = attrs.Factory(Signals)

    def service(self, notes: Sequence[str] = ()) -> MailismusService:
        return MailismusService(
            self.server,
            cast(Reactor, self.reactor),
            Log(self.maillog, None),
            notes,
            self.reloader,
            self.signals,
            self.ended.append,
            notifier=self.notifier,
            locate=lambda error: ConfigError("f.xml", 3, error.text),
        )

    def send(self, number: signal.Signals) -> None:
        """A signal, and a turn of the reactor."""
        signal.raise_signal(number)
        for reader in self.reactor.getReaders():
            reader.doRead()

    def hang_up(self) -> None:
        """SIGHUP."""
        self.send(signal.SIGHUP)

    def start(self, notes: Sequence[str] = ()) -> MailismusService:
        """A service that was started, the reactor running."""
        service = self.service(notes)
        service.startService()
        self.reactor.run()
        return service


@implementer(ILogObserver)
class Events:
    """The program's events while the block lasts."""

    def __enter__(self) -> list[LogEvent]:
        self.events: list[LogEvent] = []
        globalLogPublisher.addObserver(self)
        return self.events

    def __exit__(self, *_: object) -> None:
        globalLogPublisher.removeObserver(self)

    def __call__(self, event: LogEvent) -> None:
        self.events.append(event)


def test_the_ready_line_comes_once_mail_is_accepted() -> None:
    bench = Bench()
    bench.start()
    assert bench.maillog.lines == []
    bench.server.started.callback([Listening("SMTP", "127.0.0.1", 2525), Listening("SIX", "::1", 26)])
    assert bench.maillog.lines == [b"ready: SMTP=127.0.0.1:2525 SIX=[::1]:26"]


def test_notes_are_logged() -> None:
    bench = Bench()
    with Events() as events:
        bench.start(["a limit was lowered"])
    assert any(event.get("note") == "a limit was lowered" for event in events)


def test_a_stop_is_done_when_the_server_is_at_rest() -> None:
    bench = Bench()
    service = bench.start()
    stopped = service.stopService()
    assert not stopped.called
    bench.server.stopped.callback(None)
    assert stopped.called
    assert bench.server.calls == ["start", "stop"]


def test_a_second_request_to_stop_changes_nothing() -> None:
    bench = Bench()
    bench.start().stopService()
    with Events() as events:
        bench.send(signal.SIGTERM)
    assert [event["log_format"] for event in events] == ["Already stopping"]
    assert bench.server.calls == ["start", "stop"]


def test_sighup_reloads_once_mail_is_accepted() -> None:
    bench = Bench()
    bench.start()
    bench.hang_up()
    bench.hang_up()
    assert bench.reloader.asked == 0
    bench.server.started.callback([])
    assert bench.reloader.asked == 1
    bench.hang_up()
    assert bench.reloader.asked == 2


def test_the_service_manager_hears_ready_when_no_reload_is_under_way_any_more() -> None:
    bench = Bench()
    bench.start()
    bench.server.started.callback([])
    for _ in range(2):
        bench.hang_up()
    assert bench.notifier.told == ["ready", "reloading", "reloading"]
    bench.reloader.over[0].callback(None)
    assert bench.notifier.told == ["ready", "reloading", "reloading", "ready"]


def test_a_reload_that_ends_while_it_stops_is_told_to_nobody() -> None:
    bench = Bench()
    service = bench.start()
    bench.server.started.callback([])
    bench.hang_up()
    service.stopService()
    assert bench.reloader.is_stopped
    bench.reloader.over[0].callback(None)
    assert bench.notifier.told == ["ready", "reloading", "stopping"]


def test_what_came_before_the_reactor_ran_is_answered_the_logs_before_the_ready_line() -> None:
    bench = Bench()
    service = bench.service()
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGUSR1)
    service.startService()
    signal.raise_signal(signal.SIGUSR1)
    assert bench.server.calls == []
    bench.reactor.run()
    assert bench.server.calls == ["reopen", "start"]
    bench.server.started.callback([])
    assert bench.reloader.asked == 1


def test_sighup_changes_nothing_while_it_stops() -> None:
    bench = Bench()
    service = bench.start()
    bench.server.started.callback([])
    service.stopService()
    bench.hang_up()
    assert bench.reloader.asked == 0


def test_a_start_that_fails_is_logged_and_ends_the_process_with_its_code() -> None:
    bench = Bench()
    bench.start()
    with Events() as events:
        bench.server.started.errback(StartError(75, "another server holds the queue"))
    assert bench.ended == [75]
    assert bench.reactor.hasStopped
    told = [str(event["reason"]) for event in events if "reason" in event]
    assert told == ["f.xml:3: another server holds the queue"]


def test_a_bug_in_starting_ends_the_process_with_70() -> None:
    bench = Bench()
    bench.start()
    bench.server.started.errback(ZeroDivisionError())
    assert bench.ended == [70]


def test_the_application_gets_our_log() -> None:
    bench = Bench()
    destination = LogDestination(Output(1), cast(Reactor, bench.reactor))
    service = MailismusService(
        bench.server, cast(Reactor, bench.reactor), Log(destination, destination), (), bench.reloader, bench.signals
    )
    application = Application("x")
    service.setServiceParent(application)
    assert application.getComponent(ILogObserver) is destination
