"""A network in memory: `connectTCP` to servers of the test's own, bytes on their way for a turn of the clock or longer.

A host that does not listen refuses; one that is a black hole never answers.
"""

from __future__ import annotations

from collections.abc import Iterable

from twisted.internet import error
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IPullProducer
from twisted.internet.protocol import ClientFactory, Factory, Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure


class Wire:
    """One end of a connection: a transport with a pull producer's rules."""

    disconnecting = False

    def __init__(self, clock: Clock, latency_s: float) -> None:
        self._clock, self._latency_s = clock, latency_s
        self.protocol: Protocol
        self.other: Wire
        self.is_open = True
        self.written = 0
        self._producer: IPullProducer | None = None

    def write(self, data: bytes) -> None:
        if self.is_open and not self.disconnecting and data:
            self.written += len(data)
            self._clock.callLater(self._latency_s, self.other._deliver, data)
            if self._producer is not None:
                self._clock.callLater(0, self._pull)

    def writeSequence(self, parts: Iterable[bytes]) -> None:
        self.write(b"".join(parts))

    def loseConnection(self) -> None:
        if self.is_open and not self.disconnecting:
            self.disconnecting = True
            self._clock.callLater(self._latency_s, self._close, ConnectionDone())

    def abortConnection(self) -> None:
        if self.is_open:
            self._close(ConnectionLost())

    def registerProducer(self, producer: IPullProducer, streaming: bool) -> None:
        assert not streaming
        assert self._producer is None
        self._producer = producer
        producer.resumeProducing()

    def unregisterProducer(self) -> None:
        self._producer = None

    def setTcpNoDelay(self, enabled: bool) -> None:
        pass

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 1)

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 2)

    def _pull(self) -> None:
        if self._producer is not None and self.is_open:
            self._producer.resumeProducing()

    def _deliver(self, data: bytes) -> None:
        if self.is_open:
            self.protocol.dataReceived(data)

    def _close(self, reason: Exception) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if self._producer is not None:
            self._producer.stopProducing()
        self._clock.callLater(self._latency_s, self.other._close, ConnectionDone())
        self.protocol.connectionLost(Failure(reason))  # type: ignore[no-untyped-call]  # Twisted has no annotation here


class Network:
    """The `IReactorTCP` of a test."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.latency_s = 0.0
        """How long bytes are under way."""
        self.servers: dict[tuple[str, int], Factory] = {}
        self.black_holes: set[str] = set()
        self.attempts: list[tuple[str, int]] = []

    def connectTCP(self, host: str, port: int, factory: ClientFactory, timeout: float = 30) -> None:
        self.attempts.append((host, port))
        if host in self.black_holes:
            self._clock.callLater(timeout, self._refuse, factory)
        else:
            self._clock.callLater(0, self._connect, host, port, factory)

    def connectUNIX(self, address: str, factory: ClientFactory, timeout: float = 30) -> None:
        """To the server at that path, which has port 0."""
        self.connectTCP(address, 0, factory, timeout)

    def _connect(self, host: str, port: int, factory: ClientFactory) -> None:
        server = self.servers.get((host, port))
        if server is None:
            self._refuse(factory)
            return
        near, far = Wire(self._clock, self.latency_s), Wire(self._clock, self.latency_s)
        near.other, far.other = far, near
        self._made(near)
        address = IPv4Address("TCP", host, port)
        for wire, side in ((far, server), (near, factory)):
            protocol = side.buildProtocol(address)
            assert isinstance(protocol, Protocol)
            wire.protocol = protocol
        near.protocol.makeConnection(near)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        far.protocol.makeConnection(far)  # type: ignore[no-untyped-call]  # as above

    def _made(self, near: Wire) -> None:
        """A connection is made; this is the client's end of it."""

    def _refuse(self, factory: ClientFactory) -> None:
        reason = Failure(error.ConnectionRefusedError())  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        factory.clientConnectionFailed(None, reason)  # type: ignore[arg-type]  # our factories ask nothing of the connector
