"""The service: from the start of the reactor to the end of the process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import attrs
import pytest
from twisted.application.service import Application
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from mailismus.config.settings import Settings
from mailismus.errors import StartError
from mailismus.observe.maillog import MemoryMailLog
from mailismus.start.logfile import LogDestination
from mailismus.start.output import Output
from mailismus.start.server import Listening, Reactor
from mailismus.start.service import MailismusService


class FakeReactor(MemoryReactorClock):
    """A reactor whose other threads are this one."""

    def callFromThread(self, callable: Callable[..., object], *args: object) -> None:  # noqa: A002 - Twisted's name
        self.callLater(0, callable, *args)


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

    def reload(self, settings: Settings) -> None:
        self.calls.append("reload")


@attrs.define
class Bench:
    server: FakeServer = attrs.Factory(FakeServer)
    reactor: FakeReactor = attrs.Factory(FakeReactor)
    maillog: MemoryMailLog = attrs.Factory(MemoryMailLog)
    ended: list[int] = attrs.Factory(list)
    reloads: list[str] = attrs.Factory(list)

    def service(self, notes: Sequence[str] = ()) -> MailismusService:
        return MailismusService(
            self.server,
            cast(Reactor, self.reactor),
            self.maillog,
            None,
            notes,
            lambda: self.reloads.append("reload"),
            self.ended.append,
        )

    def hang_up(self) -> None:
        """SIGHUP."""
        signal.raise_signal(signal.SIGHUP)
        self.reactor.advance(0)

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


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    numbers = (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


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
        signal.raise_signal(signal.SIGTERM)
        bench.reactor.advance(0)
    assert [event["log_format"] for event in events] == ["Already stopping"]
    assert bench.server.calls == ["start", "stop"]


def test_sighup_reloads_once_mail_is_accepted() -> None:
    bench = Bench()
    bench.start()
    bench.hang_up()
    bench.hang_up()
    assert bench.reloads == []
    bench.server.started.callback([])
    assert bench.reloads == ["reload"]
    bench.hang_up()
    assert bench.reloads == ["reload", "reload"]


def test_sighup_changes_nothing_while_it_stops() -> None:
    bench = Bench()
    service = bench.start()
    bench.server.started.callback([])
    service.stopService()
    bench.hang_up()
    assert bench.reloads == []


def test_a_start_that_fails_is_logged_and_ends_the_process_with_its_code() -> None:
    bench = Bench()
    bench.start()
    with Events() as events:
        bench.server.started.errback(StartError(75, "another server holds the queue"))
    assert bench.ended == [75]
    assert bench.reactor.hasStopped
    assert any("another server holds the queue" in str(event.get("log_failure")) for event in events)


def test_a_bug_in_starting_ends_the_process_with_70() -> None:
    bench = Bench()
    bench.start()
    bench.server.started.errback(ZeroDivisionError())
    assert bench.ended == [70]


def test_the_application_gets_our_log() -> None:
    bench = Bench()
    destination = LogDestination(Output(1), cast(Reactor, bench.reactor))
    service = MailismusService(
        bench.server, cast(Reactor, bench.reactor), destination, destination, (), lambda: None, bench.ended.append
    )
    application = Application("x")
    service.setServiceParent(application)
    assert application.getComponent(ILogObserver) is destination
