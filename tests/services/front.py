"""A TCP port before a service. It stays open while the service is stopped, killed or moved, and can slow its answers down.

A connection ends when either side ends. While the service does not listen, a client is refused: its connection is closed
as soon as the service has refused ours.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import cast

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import (
    IListeningPort,
    IPushProducer,
    IReactorSocket,
    IReactorTCP,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import ClientFactory, Protocol, ServerFactory, connectionDone
from twisted.protocols.portforward import Proxy, ProxyClient
from twisted.python.failure import Failure

LOOPBACK = "127.0.0.1"


class FrontReactor(IReactorTCP, IReactorSocket, IReactorTime):
    """The part of the reactor that is used."""


class _Answers(ProxyClient):
    """Our connection to the service: what it says goes to the client, later if the front is slow."""

    def __init__(self, reactor: FrontReactor, delay_s: Callable[[], float]) -> None:
        self._reactor, self._delay_s = reactor, delay_s
        self._last_at = 0.0

    def dataReceived(self, data: bytes) -> None:
        # In order: no byte is written before those that came earlier.
        self._last_at = max(self._reactor.seconds() + self._delay_s(), self._last_at)
        wait_s = self._last_at - self._reactor.seconds()
        if wait_s <= 0:
            self._say(data)
        else:
            self._reactor.callLater(wait_s, self._say, data)

    def _say(self, data: bytes) -> None:
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.write(data)


class _ToService(ClientFactory):
    noisy = False

    def __init__(self, front: Front, server: Proxy) -> None:
        self._front, self._server = front, server

    def buildProtocol(self, addr: object) -> Protocol:
        client = _Answers(self._front.reactor, lambda: self._front.delay_s)
        client.setPeer(self._server)
        return client

    def clientConnectionFailed(self, connector: object, reason: object) -> None:
        cast(ITCPTransport, self._server.transport).abortConnection()


class _FromClient(Proxy):
    """A client's connection. It is read once ours to the service is made."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def connectionMade(self) -> None:
        cast(IPushProducer, self.transport).pauseProducing()
        self._front.connect(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._front.forget(self)
        super().connectionLost(reason)  # type: ignore[no-untyped-call]  # Twisted's


class _Listening(ServerFactory):
    noisy = False

    def __init__(self, front: Front) -> None:
        self._front = front

    def buildProtocol(self, addr: object) -> Protocol:
        return _FromClient(self._front)


class Front:
    """The port that clients are told."""

    def __init__(self, reactor: FrontReactor, target_port: int, target_host: str = LOOPBACK) -> None:
        self.reactor = reactor
        self.delay_s = 0.0
        self._target_host, self._target_port = target_host, target_port
        self._number = 0
        self._port: IListeningPort | None = None
        self._clients: set[Proxy] = set()

    def open(self, address: str = LOOPBACK, number: int = 0) -> int:
        """Listen on a port of this address: its number. 0: one that is free, and later on the same."""
        self._port = self.reactor.listenTCP(number or self._number, _Listening(self), interface=address)
        host = self._port.getHost()
        assert isinstance(host, IPv4Address)
        self._number = host.port
        return self._number

    def adopt(self, listening: socket.socket) -> None:
        """Listen by a socket that listens already; it may be of another network."""
        with listening:
            self._port = self.reactor.adoptStreamPort(listening.fileno(), listening.family, _Listening(self))

    def connect(self, server: Proxy) -> None:
        """Connect a client with the service."""
        self._clients.add(server)
        self.reactor.connectTCP(self._target_host, self._target_port, _ToService(self, server))

    def forget(self, server: Proxy) -> None:
        """A client has gone."""
        self._clients.discard(server)

    def slow(self, delay_s: float) -> None:
        """From now on each piece of an answer is told so much later. 0: at once."""
        self.delay_s = delay_s

    def close(self) -> None:
        """Listen no more, and cut off who is connected."""
        if self._port is not None:
            self._port.stopListening()
        for server in list(self._clients):
            cast(ITCPTransport, server.transport).abortConnection()
