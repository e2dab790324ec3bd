"""What holds mail back, over real sockets on loopback: each limit is made to hold, and lets go again.

Asked of each: the sentence of an entry, the log records at the begin and at the end, the counter.
"""

from __future__ import annotations

import errno
import os
import pathlib
import random
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import attrs
import pytest
from twisted.internet.defer import Deferred, fail
from twisted.logger import LogEvent, capturedLogs, formatEvent

from mailismus.deliver.metrics import METRICS
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.why import watch
from mailismus.deliver.why.hold import HOLDS, Hold
from mailismus.disk.posix import PosixDisk, PosixFile
from mailismus.disk.worker import ThreadPool, Workers
from mailismus.dns.addresses import Loopback
from mailismus.dns.client import DnsClient
from mailismus.dns.mx import MxPolicy, MxResolver
from mailismus.dns.servers import NameServer
from mailismus.errors import Unavailable
from mailismus.maildir.delivery import begin_delivery
from mailismus.queue.interface import Filter, IQueue, Page
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from tests.clustered.harness import queue_settings
from tests.deliver.harness import Names
from tests.fakes.dnsserver import FakeNameServer
from tests.fakes.sink import Act, Action, Sink, SinkFactory
from tests.scenarios.deliver_server import DeliverServer

ACCEPTED = b"250 2.0.0 Ok: queued\r\n"
BUSY = b"421 4.7.0 too many for me\r\n"


class Holding(DeliverServer):
    """A server that is watched until something holds its mail, and until that lets go."""

    def expect(self, hold: Hold, sentence: str, release: Callable[[], object], subject: str = "") -> None:
        """Run until entries are held so, then `release`, and run until they are not. `sentence`, `subject`: patterns."""
        held: list[str] = []
        with capturedLogs() as events:
            self.run_until(lambda: self._goes_on(hold, sentence, release, held, events))
        begin, end = (
            _records(events, f"Held back ({hold.value}), "),
            _records(events, f"No longer held back ({hold.value}), "),
        )
        assert re.search(sentence, begin[0]), begin
        assert re.search(subject, begin[0].partition("), ")[2].partition(": ")[0]), begin
        assert re.search(r": after \d+ s( \(and \d+ records of other holds were left out\))?$", end[0]), end
        assert self._counter("mailismus_deliver_holds_total", hold) >= 1

    def _goes_on(
        self, hold: Hold, sentence: str, release: Callable[[], object], held: list[str], events: Sequence[LogEvent]
    ) -> bool:
        """Whether the hold has come and gone."""
        if not held:
            if not _records(events, f"Held back ({hold.value})"):
                return False
            held += [text for kind, text in self.reasons() if kind == hold.value and re.search(sentence, text)]
            if held:
                assert self._counter("mailismus_deliver_holds", hold) >= 1
                release()
            return False
        return bool(_records(events, f"No longer held back ({hold.value})"))

    def reasons(self) -> list[tuple[str, str]]:
        """Why each entry waits."""
        found: list[tuple[str, str]] = []

        def explain(page: Page) -> None:
            explained = self.queue.explanations().of(page.messages, is_brief=False)
            found.extend((waiting.hold, waiting.sentence.decode()) for waiting in explained.values())

        self.queue.search(Filter(), None, 10_000).addCallback(explain)
        return found

    def _counter(self, name: str, hold: Hold) -> float:
        (reading,) = (metric.read(self.task) for metric in METRICS if metric.name == name)
        assert isinstance(reading, dict)
        return float(reading[(hold.value,)])

    def deliver_to(self, *ports: int, **changes: Any) -> None:
        super().deliver_to(*ports, **changes)
        self.queue.on_explain(self.task.explanations)
        self.queue.on_flush(self.task.forget_deaths, self.task.forget_deaths_of)

    def find_names(self, zone: str, port: int) -> FakeNameServer:
        """Find hosts by a name server of this zone."""
        names = FakeNameServer(self.reactor, zone)
        chance, monotonic = random.SystemRandom(), self.world.monotonic
        client = DnsClient(self.reactor, lambda: (NameServer("127.0.0.1", names.port),), 5.0, chance, monotonic)
        policy = MxPolicy(loopback=Loopback.ALLOWED, port=port)
        self.locator = Locator(Names(), MxResolver(client, policy, self.reactor, chance))
        self.on_close.callback(client.close)
        self.on_close.callback(names.close)
        return names

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.on_close = ExitStack()


def _records(events: Sequence[LogEvent], beginning: str) -> list[str]:
    return [text for event in events if (text := str(formatEvent(event))).startswith(beginning)]


def let_go(*sinks: SinkFactory) -> Callable[[], None]:
    """These behave again."""

    def act() -> None:
        for sink in sinks:
            sink.script.clear()
            for connection in sink.connections:
                if not connection.is_closed:
                    connection.transport_of().loseConnection()

    return act


def accept_some(count: int, then: Action) -> Callable[[Sink], Action]:
    """Accept so many messages, answer to the next one as told, and then to none."""
    left = [count]

    def answer(_: Sink) -> Action:
        left[0] -= 1
        return ACCEPTED if left[0] >= 0 else then if left[0] == -1 else Act.SILENCE

    return answer


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.deliver.task.LOOK_S", 0.05)
    monkeypatch.setattr("mailismus.deliver.taking.SHORT_S", 0.5)
    monkeypatch.setattr(watch, "AFTER_S", 0.2)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[Holding]:
    server = Holding(tmp_path)
    yield server
    server.on_close.close()
    server.close()


def test_connections_with_one_host(server: Holding) -> None:
    sink, port = server.sink({"dot": Act.SILENCE})
    server.deliver_to(port, maxserverconnections=1)
    for number in range(8):
        server.put(b"r%d@b.example" % number)
    server.expect(Hold.CONNECTIONS, rf"waits for 127\.0\.0\.1:{port}: 1 of 1 connections busy$", let_go(sink))


def test_all_connections(server: Holding) -> None:
    first, port = server.sink({"dot": Act.SILENCE})
    second, other = server.sink({"dot": Act.SILENCE})
    server.deliver_to(port, other, maxconnections=1)
    server.put(b"r@b.example")
    server.put(b"r@d1.example")
    server.expect(Hold.WORKERS, r"1 of 1 in use \(maxconnections\)$", let_go(first, second), "^connections$")


def test_a_window_that_is_cut_by_421(server: Holding) -> None:
    sink, port = server.sink({"dot": accept_some(4, BUSY)})
    server.deliver_to(port)
    for number in range(20):
        server.put(b"r%d@b.example" % number)
    busy = rf"waits for 127\.0\.0\.1:{port}: \d of \d connections busy"
    server.expect(Hold.WINDOW, rf"{busy}, throttled since \d\d:\d\d after 421 4\.7\.0$", let_go(sink))


def test_greetings_that_are_refused(server: Holding) -> None:
    def greeting(sink: Sink) -> Action:
        return BUSY if sink.sinks.open > 1 else b"220 sink ESMTP\r\n"

    sink, port = server.sink({"greeting": greeting, "dot": Act.SILENCE})
    server.deliver_to(port)
    for number in range(8):
        server.put(b"r%d@b.example" % number)
    busy = rf"waits for 127\.0\.0\.1:{port}: 1 of 1 connections busy"
    server.expect(Hold.HOST, rf"{busy}, throttled since \d\d:\d\d after 421 4\.7\.0$", let_go(sink))


def test_messages_a_minute(server: Holding) -> None:
    _, port = server.sink()
    server.deliver_to(port, messages_per_minute=60)
    for number in range(3):
        server.put(b"r%d@b.example" % number)
    server.expect(Hold.RATE, r"at most 60 messages a minute, the next at \d\d:\d\d:\d\d$", lambda: None)


def test_a_dead_host(server: Holding) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server.deliver_to(port)
    server.put(b"r@b.example")

    with capturedLogs() as events:
        server.run_until(
            lambda: _records(events, "Held back (dead)") and [kind for kind, _ in server.reasons()] == ["later"]
        )
    ((_, text),) = server.reasons()
    assert re.search(rf"failed: .*; 127\.0\.0\.1:{port} is left alone until \d\d:\d\d:\d\d$", text)
    (record,) = _records(events, "Held back (dead)")
    assert re.search(rf"^Held back \(dead\), 127\.0\.0\.1:{port}: .* next try at .*; 451 4\.4\.1 connect to ", record)
    assert server.task.holds.begun[Hold.DEAD] == 1


def test_a_dead_host_that_is_flushed(server: Holding) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server.deliver_to(port)
    server.put(b"r@b.example")
    flushed: list[object] = []

    def goes_on(events: Sequence[LogEvent]) -> bool:
        if not flushed and _records(events, "Held back (dead)") and server.statuses():
            server.sink(port_number=port)
            flushed.append(server.queue.visit_all(Filter()))
        return bool(_records(events, "No longer held back (dead)")) and b"status=sent" in server.statuses()[-1]

    with capturedLogs() as events:
        server.run_until(lambda: goes_on(events))


def test_a_silent_name_server(server: Holding) -> None:
    _, port = server.sink()
    server.find_names("b.example MX 10 mx.b.example\nb.example MX !delay 1\nmx.b.example A 127.0.0.1", port)
    server.deliver_to(client_mxport=port)
    server.put(b"r@b.example")
    server.expect(Hold.LOOKUP, r"the hosts of b\.example are looked up since \d\d:\d\d$", lambda: None, r"^b\.example$")


def test_more_look_ups_than_may_be_under_way(server: Holding) -> None:
    _, port = server.sink()
    server.find_names("\n".join(f"d{number}.example * !delay 0.5" for number in range(101)), port)
    server.deliver_to(client_mxport=port)
    for number in range(101):
        server.put(b"r@d%d.example" % number)
    server.expect(Hold.LOOKUPS, r"\d+ of 100 look-ups under way$", lambda: None, "^look-ups$")


def test_a_full_pool_of_local_deliveries(server: Holding, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def begin(*arguments: Any) -> Any:
        answers.wait(60)
        return begin_delivery(*arguments)

    monkeypatch.setattr("mailismus.deliver.local.deposit.begin_delivery", begin)
    users = frozenset(b"u%d" % number for number in range(12))
    server.directory = attrs.evolve(server.directory, users=users)
    server.deliver_to(1)
    for user in sorted(users):
        server.put(user + b"@home.example")
    server.expect(Hold.LOCAL, r"waits for a local delivery: (\d+) of \1 under way$", answers.set, "^local deliveries$")


def test_a_slow_host_with_mail_behind(server: Holding) -> None:
    sink, port = server.sink({"MAIL": Act.SILENCE})
    server.deliver_to(port, maxserverconnections=1)
    for number in range(3):
        server.put(b"r%d@b.example" % number)
    server.expect(
        Hold.SLOW, rf"waits for 127\.0\.0\.1:{port}: it has not replied for \d+ s, \d messages? behind that$", let_go(sink)
    )


def test_room(server: Holding) -> None:
    sink, port = server.sink({"dot": Act.SILENCE})
    server.deliver_to(port, queuecache=8, maxserverconnections=2)
    for number in range(30):
        server.put(b"r%d@b.example" % number)
    server.expect(Hold.ROOM, r"waits for room: ", let_go(sink))


def test_a_queue_that_can_not_be_read(server: Holding, monkeypatch: pytest.MonkeyPatch) -> None:
    _, port = server.sink()
    server.deliver_to(port, interval_error_s=0.5)
    server.put(b"r@b.example")
    take = server.provider.take
    monkeypatch.setattr(server.provider, "take", lambda *_: fail(Unavailable("the disk is away")))
    server.expect(
        Hold.QUEUE,
        r"waits for the queue: it can't be read, next try at \d\d:\d\d:\d\d; the disk is away$",
        lambda: monkeypatch.setattr(server.provider, "take", take),
    )


def test_a_disk_that_fails(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sick = [False]
    real = PosixFile.sync

    def sync(file: PosixFile) -> None:
        if sick[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(file)

    monkeypatch.setattr(PosixFile, "sync", sync)
    paths = [tmp_path / name for name in ("queue", "spool", "ms")]
    for path in paths:
        path.mkdir(mode=0o700)
    pools: list[ThreadPool] = []

    def make(reactor: Any) -> IQueue:
        made = queue_settings()
        settings = attrs.evolve(made, rootpath=str(paths[0]), spool=attrs.evolve(made.spool, rootpath=str(paths[1])))
        pools.extend((ThreadPool(reactor, "journal"), ThreadPool(reactor, "files")))
        for pool in pools:
            pool.start()
        opened = open_queue(settings, PosixDisk(), pools[1], reactor, os.urandom)
        return build(settings, PosixDisk(), opened, Workers(*pools), reactor, reactor.seconds)

    server = Holding(paths[2], make)

    def dot(_: Sink) -> Action:
        sick[0] = True  # from the first outcome on
        return ACCEPTED

    sink, port = server.sink({"dot": dot})
    server.deliver_to(port, queuecache=1000, maxrecips=1)

    def begin() -> None:
        opening: Deferred[None] = server.provider.open()
        opening.addCallback(lambda _: server.put(*(b"r%d@b.example" % number for number in range(230))))

    server.reactor.callWhenRunning(begin)

    def heal() -> None:
        sink.script.clear()
        sick[0] = False

    try:
        server.expect(Hold.DISK, r"waits for the disk of the queue: 2\d\d outcomes are not durable yet$", heal, "^queue$")
        assert len(sink.acknowledged()) >= 200
    finally:
        for pool in pools:
            pool.stop()
        server.close()


def test_each_hold_is_shown_here_or_with_a_clock() -> None:
    with_a_clock = {Hold.SHARE, Hold.TRIAL, Hold.USER, Hold.MAILDIR, Hold.MACHINE}
    here = set(re.findall(r"Hold\.([A-Z]+),\s", pathlib.Path(__file__).read_text())) | {"DEAD"}
    assert {hold.name for hold in HOLDS} == here | {hold.name for hold in with_a_clock}
