"""The ends of a TLS transport in memory: the session above it, and the TCP connection below."""

from __future__ import annotations

from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailismus.net.tls import TlsTransport


class Session:
    """What is above TLS; answers each piece with what it is told to."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.told: list[bytes] = []
        self.failed: list[bytes] = []
        self.is_lost = False

    def handshake_completed(self, tls: bytes) -> None:
        assert not self.pieces
        self.told.append(tls)

    def dataReceived(self, data: bytes) -> None:
        assert self.told
        self.pieces.append(data)

    def handshake_failed(self, why: bytes) -> None:
        self.failed.append(why)

    def connectionLost(self, reason: Failure) -> None:
        assert not self.is_lost
        self.is_lost = True


class Tcp(StringTransport):
    """A TCP connection, as far as TLS asks for it."""

    protocol: TlsTransport

    def lose(self) -> None:
        """It is gone."""
        protocol = self.protocol
        del self.protocol
        protocol.connectionLost(Failure(ConnectionDone()))  # type: ignore[no-untyped-call]  # Twisted's
