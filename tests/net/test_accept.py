"""Listening and accepting."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.interfaces import IAddress, IProtocol
from twisted.internet.task import Clock

from mailismus.errors import StartError
from mailismus.net.accept import PAUSE_S, Acceptor
from mailismus.net.listen import Listening, bind, close_all
from tests.net.sockets import FakeReactor, Lost


class Failing(Lost):
    """A session that does not begin."""

    def connectionMade(self) -> None:
        raise RuntimeError("no")


class LostFactory:
    """Makes sessions and remembers them."""

    def __init__(self) -> None:
        self.made: list[Lost] = []
        self.kind: type[Lost] = Lost

    def buildProtocol(self, addr: IAddress) -> IProtocol:
        self.made.append(self.kind())
        return self.made[-1]

    def doStart(self) -> None: ...

    def doStop(self) -> None: ...


class Bench:
    """An acceptor on a free port."""

    def __init__(self) -> None:
        self.reactor, self.clock, self.factory = FakeReactor(), Clock(), LostFactory()
        self.listening = bind("TEST", "127.0.0.1", 0)[0]
        factory: object = self.factory
        self.acceptor = Acceptor(self.listening, factory, self.reactor, self.clock)  # type: ignore[arg-type]  # it is one
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
    made.reactor.advance(0)


def test_each_client_has_a_session(bench: Bench) -> None:
    clients = [bench.connect() for _ in range(5)]
    while len(bench.factory.made) < 5:
        bench.acceptor.doRead()
    clients[0].sendall(b"hello")
    for reader in tuple(bench.reactor.readers):
        if reader is not bench.acceptor:
            reader.doRead()
    assert sorted(session.data for session in bench.factory.made) == [b""] * 4 + [b"hello"]
    for client in clients:
        client.close()


def test_an_accepted_connection_sends_small_writes_at_once(bench: Bench) -> None:
    with bench.connect():
        bench.acceptor.doRead()
        transport: Any = bench.factory.made[0].transport
        assert transport.getTcpNoDelay()


def test_nobody_waiting_is_no_trouble(bench: Bench) -> None:
    bench.acceptor.doRead()
    assert not bench.factory.made
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
        assert len(bench.factory.made) == 1


def test_stopping_during_a_pause_leaves_no_timer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.acceptor._wait(OSError(errno.EMFILE, "full"))
    bench.acceptor.stop()
    assert not bench.clock.getDelayedCalls()
    assert bench.acceptor.fileno() == -1


def test_a_session_that_does_not_begin_costs_nobody_else(bench: Bench) -> None:
    bench.factory.kind = Failing
    with bench.connect():
        bench.acceptor.doRead()
        bench.factory.kind = Lost
        with bench.connect():
            bench.acceptor.doRead()
            bench.acceptor.doRead()
    assert [type(session) for session in bench.factory.made] == [Failing, Lost]
    bench.reactor.advance(0)
    assert bench.factory.made[0].losses == 1


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
    taken: Listening = bind("FIRST", "127.0.0.1", 0)[0]
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
