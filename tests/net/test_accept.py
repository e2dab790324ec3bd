"""Listening and accepting."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from twisted.internet.interfaces import IProtocol
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher

from mailismus.errors import StartError
from mailismus.net.accept import PAUSE_S, Acceptor, discard_early_input
from mailismus.net.connection import AcceptedConnection
from mailismus.net.listen import ListeningSocket, bind, close_all
from tests.net.sockets import FakeReactor, Lost


@contextlib.contextmanager
def logged_to(observe: Callable[[object], None]) -> Iterator[None]:
    """Sees events of the log."""
    observer: Any = observe
    globalLogPublisher.addObserver(observer)
    try:
        yield
    finally:
        globalLogPublisher.removeObserver(observer)


class Failing(Lost):
    """A session that does not begin."""

    def connectionMade(self) -> None:
        raise RuntimeError("no")


class LostGate:
    """Makes sessions and remembers them; `words` turn everybody away."""

    def __init__(self) -> None:
        self.made: list[Lost] = []
        self.kind: type[Lost] = Lost
        self.words: bytes | None = None
        self.hosts: list[str] = []
        self.early: list[bool] = []

    def admit(self, host: str, made: socket.SocketType) -> IProtocol | bytes:
        self.hosts.append(host)
        self.early.append(discard_early_input(made))
        if self.words is not None:
            return self.words
        self.made.append(self.kind())
        return self.made[-1]


class Bench:
    """An acceptor on a free port."""

    def __init__(self) -> None:
        self.reactor, self.clock, self.gate = FakeReactor(), Clock(), LostGate()
        self.listening = bind("TEST", "127.0.0.1", 0)[0]
        self.acceptor = Acceptor(self.listening, self.gate, self.reactor, self.clock)
        self.acceptor.start()

    def connect(self) -> socket.socket:
        return socket.create_connection((self.listening.host, self.listening.port), 5)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.acceptor.stop()
    for reader in tuple(made.reactor.readers):
        reader.abortConnection()
    made.clock.advance(0)


def test_each_client_has_a_session(bench: Bench) -> None:
    clients = [bench.connect() for _ in range(5)]
    while len(bench.gate.made) < 5:
        bench.acceptor.doRead()
    clients[0].sendall(b"hello")
    for reader in tuple(bench.reactor.readers):
        if reader is not bench.acceptor:
            reader.doRead()
    assert sorted(session.data for session in bench.gate.made) == [b""] * 4 + [b"hello"]
    for client in clients:
        client.close()


def test_an_accepted_connection_sends_small_writes_at_once(bench: Bench) -> None:
    with bench.connect():
        bench.acceptor.doRead()
        transport: Any = bench.gate.made[0].transport
        with socket.socket(fileno=os.dup(transport.fileno())) as ours:
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_aborted_connection_is_reset_and_a_closed_one_ends(bench: Bench) -> None:
    with bench.connect() as aborted, bench.connect() as closed:
        while len(bench.gate.made) < 2:
            bench.acceptor.doRead()
        aborting, closing = (cast(AcceptedConnection, session.transport) for session in bench.gate.made)
        if aborting.getPeer().port != aborted.getsockname()[1]:
            aborting, closing = closing, aborting
        aborting.abortConnection()
        closing.close()
        bench.clock.advance(0)
        aborted.settimeout(5)
        closed.settimeout(5)
        assert closed.recv(1) == b""
        with pytest.raises(ConnectionResetError):
            aborted.recv(1)
        assert [session.losses for session in bench.gate.made] == [1, 1]


def test_who_is_turned_away_has_the_last_words_and_nothing_is_made_for_him(bench: Bench) -> None:
    bench.gate.words = b"421 4.3.2 No\r\n"
    with bench.connect() as client:
        bench.acceptor.doRead()
        client.settimeout(5)
        assert client.recv(100) == b"421 4.3.2 No\r\n"
        assert client.recv(100) == b""
    assert bench.reactor.readers == [bench.acceptor]
    assert bench.gate.hosts == ["127.0.0.1"]


def test_who_is_turned_away_without_a_word_sees_the_end(bench: Bench) -> None:
    bench.gate.words = b""
    with bench.connect() as client:
        bench.acceptor.doRead()
        client.settimeout(5)
        assert client.recv(100) == b""


def test_a_client_that_speaks_first_is_seen_and_can_read_our_answer(bench: Bench) -> None:
    bench.gate.words = b"554 5.5.0 No\r\n"
    with bench.connect() as client, bench.connect() as patient:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        bench.acceptor.doRead()
        bench.acceptor.doRead()
        assert bench.gate.early == [True, False]
        client.settimeout(5)
        assert client.recv(100) == b"554 5.5.0 No\r\n"
        assert client.recv(100) == b""
        patient.close()


def test_a_gate_that_breaks_costs_nobody_but_its_client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.connect() as client:
        with monkeypatch.context() as patch:
            patch.setattr(bench.gate, "admit", None)
            bench.acceptor.doRead()
        client.settimeout(5)
        assert client.recv(100) == b""
    with bench.connect():
        bench.acceptor.doRead()
    assert len(bench.gate.made) == 1


def test_pauses_are_told_of_once_in_a_while(bench: Bench) -> None:
    lines: list[object] = []
    with logged_to(lines.append):
        for _ in range(200):  # 50 s
            bench.acceptor._pause_accepting(OSError(errno.EMFILE, "full"))
            bench.clock.advance(PAUSE_S)
    assert len(lines) == 5


def test_nobody_waiting_is_no_trouble(bench: Bench) -> None:
    bench.acceptor.doRead()
    assert not bench.gate.made
    assert bench.acceptor in bench.reactor.readers


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_without_descriptors_or_memory_clients_wait_and_nothing_spins(
    bench: Bench, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def accept(self) -> None:
            raise OSError(code, "full")

        def fileno(self) -> int:
            return bench.listening.bound.fileno()

    with bench.connect():
        monkeypatch.setattr(bench.acceptor, "_socket", Full())
        bench.acceptor.doRead()
        assert bench.acceptor not in bench.reactor.readers
        assert bench.acceptor.pauses == 1
        monkeypatch.undo()
        bench.clock.advance(PAUSE_S)
        assert bench.acceptor in bench.reactor.readers
        bench.acceptor.doRead()
        assert len(bench.gate.made) == 1


def test_clients_that_a_firewall_keeps_away_for_ever_do_not_hold_up_the_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forbidden:
        asked = 0

        def accept(self) -> None:
            self.asked += 1
            assert self.asked < 1000, "the turn does not end"
            raise OSError(errno.EPERM, "not permitted")

        def fileno(self) -> int:
            return 0

        def close(self) -> None:
            pass

    with monkeypatch.context() as patched:
        patched.setattr(bench.acceptor, "_socket", Forbidden())
        bench.acceptor.doRead()
    assert bench.acceptor in bench.reactor.readers


def test_stopping_during_a_pause_leaves_no_timer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.acceptor._pause_accepting(OSError(errno.EMFILE, "full"))
    bench.acceptor.stop()
    assert not bench.clock.getDelayedCalls()
    assert bench.acceptor.fileno() == -1


def test_a_session_that_does_not_begin_costs_nobody_else(bench: Bench) -> None:
    bench.gate.kind = Failing
    with bench.connect():
        bench.acceptor.doRead()
        bench.gate.kind = Lost
        with bench.connect():
            bench.acceptor.doRead()
            bench.acceptor.doRead()
    assert [type(session) for session in bench.gate.made] == [Failing, Lost]
    bench.clock.advance(0)
    assert bench.gate.made[0].losses == 1


def test_stopped_it_accepts_nobody(bench: Bench) -> None:
    bench.acceptor.stop()
    assert bench.acceptor not in bench.reactor.readers
    with pytest.raises(ConnectionRefusedError):
        bench.connect()


def test_all_interfaces_are_both_families_on_one_port() -> None:
    bound = bind("ALL", "", 0)
    try:
        assert len({one.port for one in bound}) == 1
        assert {one.host for one in bound} <= {"0.0.0.0", "::"}
        with socket.create_connection(("127.0.0.1", bound[0].port), 5):
            pass
        if len(bound) == 2:
            with socket.create_connection(("::1", bound[0].port), 5):
                pass
    finally:
        close_all(bound)


def refusal(interface: str, port: int) -> StartError:
    with pytest.raises(StartError) as raised:
        close_all(bind("NAME", interface, port))
    assert "'NAME'" in raised.value.text
    return raised.value


def test_an_address_in_use_is_75() -> None:
    taken: ListeningSocket = bind("FIRST", "127.0.0.1", 0)[0]
    try:
        assert refusal("127.0.0.1", taken.port).status == 75
        assert refusal("", taken.port).status == 75
    finally:
        close_all([taken])


def test_an_address_that_is_not_here_is_78() -> None:
    assert refusal("192.0.2.1", 0).status == 78
    assert refusal("no.such.host.invalid", 0).status == 78


def test_a_port_that_may_not_be_bound_is_77(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(self: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", forbid)
    assert refusal("127.0.0.1", 25).status == 77
