"""The submitting task: binding, starting and stopping, on real sockets and a reactor that a test turns by hand."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mailismus.config.values.settings import ListenerSettings, SslSettings
from mailismus.errors import StartError
from mailismus.net import tls
from mailismus.observe.maillog import MemoryMailLog
from mailismus.smtp import replies
from mailismus.submit.task import SubmitTask
from tests.fakes.certificates import Made, make_certificate
from tests.net.sockets import FakeReactor
from tests.submit.fakes import DIRECTORY, SETTINGS, FakeManager

ENVELOPE = b"EHLO c\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\n"


class TurnedReactor(FakeReactor):
    """Its turns are made by the test."""

    def turn(self, seconds: float = 0.0) -> None:
        for _ in range(3):
            for reader in tuple(self.readers):
                if reader.fileno() < 0 or not reader.doRead:
                    continue
                why = reader.doRead()
                if why:
                    self.removeReader(reader)
                    reader.connectionLost(None)
        self.advance(seconds)


class Bench:
    """A task with one listener on a free port."""

    def __init__(self) -> None:
        self.reactor, self.manager = TurnedReactor(), FakeManager()
        self.task = self.make([ListenerSettings("SMTP", "127.0.0.1", 0, SETTINGS)])
        self.clients: list[socket.socket] = []

    def make(self, listeners: list[ListenerSettings]) -> SubmitTask:
        manager: Any = self.manager
        return SubmitTask(b"mx.example", listeners, DIRECTORY, 100_000, manager, MemoryMailLog(), self.reactor, self.reactor)

    def connect(self, port: int) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", port), 5)
        client.settimeout(5)
        self.clients.append(client)
        return client


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.task.stop(0.0)
    for client in made.clients:
        client.close()
    made.reactor.advance(1)


def test_bound_sockets_touch_no_reactor_and_clients_wait(bench: Bench) -> None:
    [(name, host, port)] = bench.task.bind()
    assert (name, host) == ("SMTP", "127.0.0.1")
    client = bench.connect(port)
    assert not bench.reactor.readers
    assert not bench.reactor.getDelayedCalls()
    bench.task.start()
    bench.reactor.turn()
    assert client.recv(100) == b"220 mx.example ESMTP\r\n"


def test_given_up_before_a_start_nobody_listens(bench: Bench) -> None:
    [(_, _, port)] = bench.task.bind()
    bench.task.close()
    with pytest.raises(ConnectionRefusedError):
        bench.connect(port)


def test_one_listener_that_cannot_bind_gives_the_others_up(bench: Bench) -> None:
    [(_, _, taken)] = bench.task.bind()
    other = bench.make(
        [ListenerSettings("A", "127.0.0.1", 0, SETTINGS), ListenerSettings("B", "127.0.0.1", taken, SETTINGS)]
    )
    with pytest.raises(StartError) as raised:
        other.bind()
    assert raised.value.status == 75
    assert "'B'" in raised.value.text
    assert not other._bound


def test_time_goes_on_by_itself(bench: Bench) -> None:
    [(_, _, port)] = bench.task.bind()
    bench.task.start()
    client = bench.connect(port)
    bench.reactor.turn()
    client.recv(100)
    for _ in range(302):
        bench.reactor.advance(1)
    assert client.recv(100) == replies.TIMED_OUT
    assert client.recv(100) == b""


def test_a_stop_waits_for_the_message_behind_its_dot(bench: Bench) -> None:
    [(_, _, port)] = bench.task.bind()
    bench.task.start()
    waiting, idle = bench.connect(port), bench.connect(port)
    bench.reactor.turn()
    waiting.sendall(ENVELOPE + b".\r\n")
    bench.reactor.turn()
    assert len(bench.manager.accepted) == 1
    stopped = bench.task.stop(bench.reactor.seconds() + 30)
    assert idle.recv(1000).endswith(replies.SHUTTING_DOWN)
    bench.reactor.turn(10)
    assert not stopped.called
    with pytest.raises(ConnectionRefusedError):
        bench.connect(port)
    bench.manager.fire()
    bench.reactor.turn(0.1)
    assert stopped.called
    heard = b""
    while piece := waiting.recv(1000):
        heard += piece
    assert heard.endswith(b"250 2.0.0 Ok: queued as 0000000000000001\r\n" + replies.SHUTTING_DOWN)
    assert not bench.reactor.getDelayedCalls()


def test_a_stop_waits_until_its_deadline_and_no_longer(bench: Bench) -> None:
    [(_, _, port)] = bench.task.bind()
    bench.task.start()
    client = bench.connect(port)
    bench.reactor.turn()
    client.sendall(ENVELOPE + b".\r\n")
    bench.reactor.turn()
    stopped = bench.task.stop(bench.reactor.seconds() + 30)
    for _ in range(2000):
        bench.reactor.advance(0.0199)
    assert stopped.called
    assert not bench.task.factories[0].sessions
    bench.manager.fire()  # the disk is done after all: nobody is there to be told


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0], ids=["back", "ahead"])
def test_a_stop_waits_as_long_whatever_the_clock_does(bench: Bench, jump_s: float) -> None:
    [(_, _, port)] = bench.task.bind()
    bench.task.start()
    client = bench.connect(port)
    bench.reactor.turn()
    client.sendall(ENVELOPE + b".\r\n")
    bench.reactor.turn()
    now = bench.reactor.seconds()
    bench.task._monotonic = lambda: bench.reactor.seconds() - jumped_s
    jumped_s = 0.0
    stopped = bench.task.stop(now + 30)
    bench.reactor.turn(1)
    bench.reactor.rightNow += jump_s
    for call in bench.reactor.calls:
        call.time += jump_s
    jumped_s = jump_s
    for _ in range(28 * 50):
        bench.reactor.advance(0.02)
    assert not stopped.called
    for _ in range(2 * 50):
        bench.reactor.advance(0.02)
    assert stopped.called


def test_a_stop_without_sessions_is_done_at_once(bench: Bench) -> None:
    bench.task.bind()
    bench.task.start()
    assert bench.task.stop(bench.reactor.seconds() + 30).called
    assert not bench.reactor.readers
    assert not bench.reactor.getDelayedCalls()


def listeners_with(made: Made) -> list[ListenerSettings]:
    """Two, with one certificate."""
    ssl = SslSettings(True, False, "cert.pem", "key.pem", made.pem, made.key_pem)
    return [ListenerSettings(name, "127.0.0.1", 0, SETTINGS, ssl) for name in ("A", "B")]


def test_a_certificate_is_loaded_once_for_all_listeners_and_when_it_changed_in_prepare_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[bytes] = []
    real = tls.make_context

    def make_context(chain_pem: bytes, key_pem: bytes) -> object:
        loaded.append(chain_pem)
        return real(chain_pem, key_pem)

    monkeypatch.setattr(tls, "make_context", make_context)
    old, new = make_certificate(), make_certificate()
    task = bench.make(listeners_with(old))
    assert loaded == [old.pem]
    task.reload(task.prepare(listeners_with(old), DIRECTORY))
    assert loaded == [old.pem]
    before = [factory.terms.tls for factory in task.factories]
    terms = task.prepare(listeners_with(new), DIRECTORY)
    assert loaded == [old.pem, new.pem]
    assert [factory.terms.tls for factory in task.factories] == before, "prepare changes nothing"
    task.reload(terms)
    assert loaded == [old.pem, new.pem]
    assert all(factory.terms.tls is not before[0] for factory in task.factories)
