"""LMTP over real sockets: TCP and Unix, a server that is not there, one that does not accept, one that vanishes."""

from __future__ import annotations

import pathlib
import socket
from collections.abc import Iterator

import pytest

from mailismus.config.values.settings import LmtpSettings
from tests.deliver.harness import deliver_settings
from tests.fakes.lmtp_sink import LmtpSinkFactory
from tests.fakes.sink import Act, Script
from tests.scenarios.deliver_server import DeliverServer

JOE, ANN = b"joe@home.example", b"ann@home.example"


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[DeliverServer]:
    server = DeliverServer(tmp_path)
    yield server
    server.close()


def store_of(server: DeliverServer, kind: str, script: Script | None = None) -> tuple[LmtpSinkFactory, LmtpSettings]:
    """An LMTP server that listens, and how it is reached."""
    store = LmtpSinkFactory(script)
    if kind == "unix":
        path = f"{server.store}/lmtp"
        server.ports.append(server.reactor.listenUNIX(path, store))
        return store, LmtpSettings(path, 0)
    port = server.reactor.listenTCP(0, store, interface="127.0.0.1")
    server.ports.append(port)
    return store, LmtpSettings("127.0.0.1", port.getHost().port)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_many_messages_arrive_once_each(server: DeliverServer, kind: str) -> None:
    store, server.lmtp = store_of(server, kind)
    store.outcomes = {ANN: b"452 4.2.2 full\r\n"}
    server.deliver_by(deliver_settings())
    for _ in range(300):
        server.put(JOE, ANN)
    server.run_until(lambda: len(server.statuses()) == 600)
    assert store.stored == [JOE] * 300
    assert len([line for line in server.statuses() if b"status=sent (250 2.0.0 stored)" in line]) == 300
    assert store.most_open <= 20
    label = (
        b"localhost[%b/lmtp]" % server.store.encode() if kind == "unix" else b"127.0.0.1[127.0.0.1]:%d" % server.lmtp.port
    )
    assert all(b", relay=" + label + b", " in line for line in server.statuses())


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_content_larger_than_the_kernel_takes_arrives_whole(server: DeliverServer, kind: str) -> None:
    content = b"".join(b"%06d %b\r\n" % (number, b"x" * 60) for number in range(80_000))
    store, server.lmtp = store_of(server, kind)
    server.deliver_by(deliver_settings())
    server.put(JOE, ANN, content=content)
    server.run_until(lambda: len(server.statuses()) == 2)
    assert [message.content == content for message in store.received] == [True]
    assert sorted(store.stored) == [ANN, JOE]


@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("act", [Act.CLOSE, Act.ABORT])
@pytest.mark.parametrize("step", ["greeting", "LHLO", "MAIL", "RCPT", "DATA", "dot"])
def test_a_server_that_vanishes_defers_its_own_mail_alone(server: DeliverServer, kind: str, step: str, act: Act) -> None:
    _, server.lmtp = store_of(server, kind, {step: act})
    sink, port = server.sink()
    server.deliver_to(port)
    server.put(JOE, b"r@b.example")
    server.run_until(lambda: len(server.statuses()) == 2)
    assert sink.acknowledged() == [b"r@b.example"]
    (line,) = [line for line in server.statuses() if JOE in line]
    assert b"status=deferred (451 4.4.2 connection lost" in line
    assert (b"may have been sent" in line) is (step == "dot")


@pytest.mark.parametrize("kind", ["nothing there", "a file", "nobody listens"])
def test_a_socket_that_does_not_connect_defers_with_the_reason(server: DeliverServer, kind: str) -> None:
    path = pathlib.Path(server.store) / "lmtp"
    why = {"nothing there": b"No such file or directory"}.get(kind, b"Connection refused")
    if kind == "a file":
        path.touch()
    elif kind != "nothing there":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    server.lmtp = LmtpSettings(str(path), 0)
    sink, port = server.sink()
    server.deliver_to(port)
    server.put(JOE, b"r@b.example")
    server.run_until(lambda: len(server.statuses()) == 2)
    assert sink.acknowledged() == [b"r@b.example"]
    (line,) = [line for line in server.statuses() if JOE in line]
    assert b"451 4.4.1 connect to localhost[%b] failed: %b" % (str(path).encode(), why) in line


def test_a_socket_whose_server_accepts_nothing_holds_up_its_own_mail_alone(server: DeliverServer) -> None:
    path = f"{server.store}/lmtp"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(path)  # the queue of connections is full now
            server.lmtp = LmtpSettings(path, 0)
            sink, port = server.sink()
            server.deliver_to(port, client_timeout_connect_s=1.0)
            server.put(JOE, *[b"r%d@b.example" % number for number in range(20)])
            server.run_until(lambda: len(server.statuses()) == 21)
    assert len(sink.acknowledged()) == 20
    (line,) = [line for line in server.statuses() if JOE in line]
    assert b"451 4.4.1 connect to localhost[%b] failed" % path.encode() in line
