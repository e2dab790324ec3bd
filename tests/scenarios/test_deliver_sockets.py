"""Delivering over real sockets on loopback: what memory can't show (kernel buffers, resets, threads).

Each test has a reactor of its own, never the global one.
"""

from __future__ import annotations

import pathlib
import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mailismus.deliver.routes.locator import Locator
from mailismus.dns.addresses import Loopback
from mailismus.dns.client import DnsClient
from mailismus.dns.mx import MxPolicy, MxResolver
from mailismus.dns.servers import NameServer as Server53
from tests.deliver.harness import CONTENT, Names, files_of
from tests.fakes.dnsserver import FakeNameServer
from tests.fakes.sink import Act
from tests.scenarios.deliver_server import DeliverServer


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[DeliverServer]:
    server = DeliverServer(tmp_path)
    yield server
    server.close()


def test_a_thousand_messages_arrive_once_each(server: DeliverServer) -> None:
    sink, port = server.sink()
    server.deliver_to(port)
    for number in range(1000):
        server.put(b"r%d@b.example" % number)
    server.run_until(lambda: len(server.statuses()) == 1000)
    assert sorted(sink.acknowledged()) == sorted(b"r%d@b.example" % number for number in range(1000))
    assert {message.content for message in sink.received} == {CONTENT}
    assert sink.most_open <= 20


def test_messages_larger_than_the_kernel_takes_arrive_whole(server: DeliverServer) -> None:
    content = b"".join(b"%06d %b\r\n" % (number, b"x" * 60) for number in range(80_000))
    sink, port = server.sink()
    server.deliver_to(port)
    for number in range(3):
        server.put(b"r%d@b.example" % number, content=content)
    server.put(b"small@b.example")
    server.run_until(lambda: len(server.statuses()) == 4)
    assert [message.content == content for message in sink.received if message.recipients != [b"small@b.example"]] == [
        True
    ] * 3


@pytest.mark.parametrize("act", [Act.CLOSE, Act.ABORT])
@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot"])
def test_a_relay_that_vanishes_defers_its_own_mail_alone(server: DeliverServer, step: str, act: Act) -> None:
    bad, bad_port = server.sink({step: act})
    good, good_port = server.sink()
    server.deliver_to(bad_port, good_port)
    server.put(b"r@b.example", b"r@d1.example")
    server.run_until(lambda: len(server.statuses()) == 2)
    assert good.acknowledged() == [b"r@d1.example"]
    assert bad.acknowledged() == []
    (line,) = [line for line in server.statuses() if b"to=<r@b.example>" in line]
    assert b"status=deferred (451 4.4.2 connection lost" in line
    assert (b"may have been sent" in line) is (step == "dot")


def test_a_relay_that_closes_in_the_middle_of_a_large_message_defers_it(server: DeliverServer) -> None:
    sink, port = server.sink()

    received = sink.buildProtocol

    def build(addr: object) -> Any:
        protocol = received(addr)
        take = protocol.dataReceived

        def count(data: bytes) -> None:
            take(data)
            if sink.bytes_received > 1 << 20:
                protocol.transport_of().abortConnection()  # type: ignore[attr-defined]  # TCP's has it

        protocol.dataReceived = count  # type: ignore[method-assign]  # a sink that goes away after a megabyte
        return protocol

    sink.buildProtocol = build  # type: ignore[method-assign]  # as above
    server.deliver_to(port)
    server.put(b"r@b.example", content=b"x" * 70 + b"\r\n" + (b"y" * 70 + b"\r\n") * 200_000)
    server.run_until(lambda: len(server.statuses()) == 1)
    assert b"status=deferred (451 4.4.2 connection lost while the message was sent)" in server.statuses()[0]


def test_a_refused_connection_defers_and_says_so(server: DeliverServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server.deliver_to(port)
    server.put(b"r@b.example")
    server.run_until(lambda: len(server.statuses()) == 1)
    assert b"dsn=4.4.1, status=deferred (451 4.4.1 connect to 127.0.0.1[127.0.0.1]:" in server.statuses()[0]
    assert b"refused" in server.statuses()[0].lower()


def test_time_outs_of_half_a_second_are_kept(server: DeliverServer) -> None:
    for step in ("greeting", "MAIL", "dot"):
        server.sink({step: Act.SILENCE})
    first, second, third = (port.getHost().port for port in server.ports)
    server.deliver_to(first, second, third, client_timeout_s=0.5, client_timeout_final_s=0.6)
    server.put(b"r@b.example", b"r@d1.example", b"r@d2.example")
    server.run_until(lambda: len(server.statuses()) == 3)
    assert all(b"timed out" in line for line in server.statuses())
    assert sum(b"may have been sent" in line for line in server.statuses()) == 1


def test_mail_goes_by_mx_over_two_failing_hosts(server: DeliverServer) -> None:
    bad, port = server.sink({"greeting": b"450 4.3.2 busy\r\n"}, "127.0.0.3")
    good, _ = server.sink(None, "127.0.0.4", port)
    names = FakeNameServer(
        server.reactor,
        """
        b.example      MX 10 mx1.b.example
        b.example      MX 20 mx2.b.example
        b.example      MX 30 mx3.b.example
        mx1.b.example  A  127.0.0.2
        mx2.b.example  A  127.0.0.3
        mx3.b.example  A  127.0.0.4
        slow.example   *  !drop
        """,
    )
    chance, monotonic = random.SystemRandom(), server.world.monotonic
    client = DnsClient(server.reactor, lambda: (Server53("127.0.0.1", names.port),), 5.0, chance, monotonic)
    policy = MxPolicy(loopback=Loopback.ALLOWED, port=port)
    server.locator = Locator(Names(), MxResolver(client, policy, server.reactor, chance))
    server.deliver_to(client_mxport=port)
    server.put(b"r@slow.example", b"r@b.example", b"s@b.example")
    server.run_until(lambda: len(server.statuses()) == 2)
    names.close()
    client.close()
    assert good.acknowledged() == [b"r@b.example", b"s@b.example"]
    assert len(bad.connections) == 1
    assert all(b"relay=mx3.b.example[127.0.0.4]:%d, " % port in line for line in server.statuses())


def test_local_mail_is_delivered_by_threads(server: DeliverServer) -> None:
    server.deliver_to(1)
    for _ in range(30):
        server.put(b"joe@home.example")
    server.run_until(lambda: len(server.statuses()) == 30)
    assert len(files_of(server.store, "joe")) == 30
    assert files_of(server.store, "joe", "tmp") == []
    assert all(b"status=sent" in line for line in server.statuses())


def test_a_stop_waits_for_a_late_answer_to_a_final_dot(server: DeliverServer) -> None:
    sink, port = server.sink({"dot": Act.SILENCE})
    server.deliver_to(port)
    server.put(b"r@b.example")

    def is_over() -> bool:
        if sink.received:
            answer = sink.connections[0].transport_of().write
            server.reactor.callLater(0.2, answer, b"250 at last\r\n")
        return bool(sink.received)

    server.run_until(is_over)
    (line,) = server.statuses()
    assert b"status=sent (250 at last)" in line
