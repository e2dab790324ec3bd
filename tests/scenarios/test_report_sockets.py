"""Reports over real sockets on loopback: what failed is told to the sender, once, and never round and round.

Each server is whole but for its disk: submitting, delivering and reporting over a queue in memory. Each test has a reactor
of its own.
"""

from __future__ import annotations

import email
import email.policy
import ipaddress
import os
import pathlib
import socket
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from twisted.internet.epollreactor import EPollReactor

from mailismus.config.values.settings import ListenerSettings, MessageStoreSettings, RetrySettings, ServerSettings
from mailismus.deliver.real_context import RealDeliveryContext
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.schedule.destdb import Deaths
from mailismus.deliver.task import DeliverTask
from mailismus.mail.directory import Directory
from mailismus.mail.envelope import Envelope
from mailismus.mail.networks import Networks
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.memory.provider import MemoryQueue
from mailismus.report.task import ReportTask
from mailismus.submit.task import SubmitTask
from tests.deliver.harness import Names, deliver_settings, files_of, relay
from tests.fakes.managing import accept
from tests.fakes.reactors import close_reactor
from tests.fakes.sink import Script, Sink, SinkFactory
from tests.report.harness import report_settings
from tests.report.samples import blocks_of, parts_of

LIMIT_S = 30.0
CONTENT = b"Received: by test\r\nSubject: hello\r\nMessage-ID: <1@home.example>\r\n\r\nHello\r\n..dot\r\n"
DIRECTORY = Directory(frozenset({b"home.example"}), frozenset({b"joe"}), b"joe")
LIMITS = ServerSettings(Networks.of([ipaddress.ip_network("127.0.0.1/32")]), 10**6, 100, 0, 0, 200, 10, 300.0)
DAYS = RetrySettings(259_200.0, 86_400.0, (900.0,))


class World:
    """A reactor, servers and sinks on it."""

    def __init__(self, store: pathlib.Path) -> None:
        self.reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self.store = str(store)
        self.servers: list[Server] = []

    def sink(self, script: Script | None = None) -> tuple[SinkFactory, int]:
        factory = SinkFactory(script)
        return factory, self.reactor.listenTCP(0, factory, interface="127.0.0.1").getHost().port

    def run_until(self, is_over: Callable[[], object], after_s: float = 0.0) -> None:
        """Runs the reactor until this is true, and `after_s` longer; stops the servers, and ends."""
        timed_out: list[bool] = []

        def look() -> None:
            self.reactor.callLater(0.005 if not is_over() else after_s, look if not is_over() else stop)

        def stop() -> None:
            guard.cancel()
            for server in self.servers:
                server.stop()
            self.reactor.callLater(0.1, self.reactor.stop)

        def give_up() -> None:
            timed_out.append(True)
            self.reactor.stop()

        guard = self.reactor.callLater(LIMIT_S, give_up)
        self.reactor.callLater(0, look)
        self.reactor.run(installSignalHandlers=False)
        close_reactor(self.reactor)
        assert not timed_out, [server.maillog.lines[-5:] for server in self.servers]


class Server:
    """A mail server. `port`: where it takes mail; what is not for home.example goes where `deliver_to` says."""

    def __init__(self, world: World, retry: RetrySettings = DAYS, name: bytes = b"mx.home.example") -> None:
        world.servers.append(self)
        self.reactor = reactor = world.reactor
        self.store, self.name = MessageStoreSettings(world.store, "Maildir"), name
        self.maillog = MemoryMailLog()
        self.surroundings = RealDeliveryContext(reactor, reactor, reactor)
        self.monotonic = self.surroundings.monotonic
        self.queue = QueueManager(MemoryQueue(reactor), retry, reactor, self.monotonic, self.maillog)
        listener = ListenerSettings("SMTP", "127.0.0.1", 0, LIMITS)
        self.submit = SubmitTask(name, [listener], DIRECTORY, 1 << 20, self.queue, self.maillog, reactor, reactor)
        [(_, _, self.port)] = self.submit.bind()
        self.report = ReportTask(report_settings(), name, self.queue, self.maillog, reactor, self.monotonic, os.urandom)
        for task in (self.submit, self.report):
            reactor.callWhenRunning(task.start)

    def deliver_to(self, port: int) -> Server:
        settings = deliver_settings(relay("127.0.0.1", port))
        world = self.surroundings
        self.deliver = DeliverTask(
            settings,
            self.store,
            DIRECTORY,
            self.name,
            self.queue,
            self.maillog,
            world,
            Locator(Names(), Names()),
            Deaths(),
        )
        self.reactor.callWhenRunning(self.deliver.start)
        return self

    def stop(self) -> None:
        self.submit.stop(self.reactor.seconds() + 5)
        for task in (self.deliver, self.report):
            task.stop(self.monotonic() + 5)

    def put(self, *recipients: bytes, sender: bytes = b"joe@home.example") -> None:
        """A message into the queue."""
        draft = self.queue.draft()
        draft.write(CONTENT)
        accept(self.queue, draft, Envelope(sender, recipients))

    def lines(self, word: bytes) -> list[bytes]:
        return [line for line in self.maillog.lines if word in line]

    def entries(self) -> int:
        """All that is in its queue."""
        found: list[int] = []
        self.queue.summary().addCallback(lambda summary: found.append(sum(c.entries for c in summary.areas.values())))
        return found[0]


@pytest.fixture
def world(tmp_path: pathlib.Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.reactor.removeAll()
    world.reactor.waker.connectionLost(None)


def refuse(*refused: bytes) -> Script:
    """A sink that refuses these recipients."""

    def answer(sink: Sink) -> bytes:
        recipient = sink.commands[-1].partition(b"<")[2].rpartition(b">")[0]
        return b"550 5.1.1 no such mailbox\r\n" if recipient in refused else b"250 2.1.5 Ok\r\n"

    return {"RCPT": answer}


def report_in_maildir(world: World) -> EmailMessage:
    """The one that joe got."""
    (path,) = files_of(world.store, "joe")
    return email.message_from_bytes(pathlib.Path(path).read_bytes(), policy=email.policy.default)


def test_one_of_three_recipients_is_refused_and_its_sender_is_told(world: World) -> None:
    sink, port = world.sink(refuse(b"nobody@far.example"))
    server = Server(world).deliver_to(port)
    server.put(b"carol@far.example", b"nobody@far.example", b"dave@far.example")
    world.run_until(lambda: server.lines(b"relay=local"))
    assert sorted(sink.acknowledged()) == [b"carol@far.example", b"dave@far.example"]
    found = report_in_maildir(world)
    assert found["Return-Path"] == "<>"
    assert found["Delivered-To"] == "joe@home.example"
    notice, status, returned = parts_of(found)
    assert "one of its 3 recipients" in " ".join(str(notice.get_content()).split())
    _, recipient = blocks_of(status)
    assert recipient["Final-Recipient"] == "rfc822; nobody@far.example"
    assert recipient["Remote-MTA"] == "dns; [127.0.0.1]"
    assert recipient["Diagnostic-Code"] == "smtp; 550 5.1.1 no such mailbox"
    assert recipient["Status"] == "5.1.1"
    original = returned.get_content()
    assert original["Subject"] == "hello"
    assert original.get_content().splitlines() == ["Hello", ".dot"]
    (link,) = server.lines(b"sender non-delivery notification: ")
    spool_id, _, report_id = link.partition(b": sender non-delivery notification: ")
    assert server.lines(report_id + b": to=<joe@home.example>, relay=local")
    assert server.lines(report_id + b": from=<>, size=")
    assert server.lines(spool_id + b": removed")
    assert len(files_of(world.store, "joe")) == 1


def test_a_dead_next_hop_is_reported_with_its_last_reply_and_the_number_of_attempts(world: World) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(world, RetrySettings(0.7, 0.5, (0.2,))).deliver_to(port)
    server.put(b"carol@far.example", b"dave@far.example")
    world.run_until(lambda: server.lines(b"relay=local"))
    attempts = len(server.lines(b"to=<carol@far.example>"))
    assert attempts >= 3
    assert len(server.lines(b"status=expired")) == 2
    notice, status, _ = parts_of(report_in_maildir(world))
    text = " ".join(str(notice.get_content()).split())
    assert f"It was tried {attempts} times" in text
    assert "No server for far.example could be reached" in text
    assert "failed: Connection refused" in text
    _, *recipients = blocks_of(status)
    assert [recipient["Final-Recipient"] for recipient in recipients] == [
        "rfc822; carol@far.example",
        "rfc822; dave@far.example",
    ]
    assert {recipient["Status"] for recipient in recipients} == {"4.4.1"}
    assert "Connection refused" in str(recipients[0]["Diagnostic-Code"])


def test_a_report_that_is_refused_is_discarded_and_logged(world: World) -> None:
    sink, port = world.sink(refuse(b"nobody@far.example", b"forged@far.example"))
    server = Server(world).deliver_to(port)
    server.put(b"nobody@far.example", sender=b"forged@far.example")
    world.run_until(lambda: server.lines(b"report discarded: bounced") and not server.entries(), 0.7)
    assert len(server.lines(b"sender non-delivery notification: ")) == 1
    assert sink.acknowledged() == []
    assert len(server.lines(b": removed")) == 2


def test_two_servers_that_send_to_each_other_end_with_one_report(world: World) -> None:
    """Each is the other's default relay: the message goes round until it has too many Received fields; so does its report,
    which is discarded then."""
    first, second = Server(world, name=b"one.example"), Server(world, name=b"two.example")
    first.deliver_to(second.port)
    second.deliver_to(first.port)
    first.put(b"ghost@far.example", sender=b"phantom@nowhere.example")
    world.run_until(
        lambda: (
            (first.lines(b"report discarded") or second.lines(b"report discarded"))
            and not first.entries()
            and not second.entries()
        ),
        0.7,
    )
    lines = first.maillog.lines + second.maillog.lines
    assert sum(b"sender non-delivery notification: " in line for line in lines) == 1
    assert sum(b"report discarded: bounced" in line for line in lines) == 1
    assert sum(b"554 5.4.6" in line and b"status=bounced" in line for line in lines) == 2


def test_two_servers_that_refuse_each_others_users_make_one_report_each_way(world: World) -> None:
    first_sink, first_port = world.sink(refuse(b"ghost@far.example"))
    second_sink, second_port = world.sink(refuse(b"phantom@near.example"))
    first, second = Server(world).deliver_to(first_port), Server(world).deliver_to(second_port)
    first.put(b"ghost@far.example", sender=b"phantom@near.example")
    second.put(b"phantom@near.example", sender=b"ghost@far.example")
    world.run_until(lambda: first_sink.received and second_sink.received and not first.entries() + second.entries(), 0.7)
    assert [(m.sender, m.recipients) for m in first_sink.received] == [(b"", [b"phantom@near.example"])]
    assert [(m.sender, m.recipients) for m in second_sink.received] == [(b"", [b"ghost@far.example"])]
