"""The UDP socket of one attempt, and the TCP connection that may follow it.

*Rules*: the socket is connected: the kernel chooses a random port, accepts datagrams of the server alone, and reports a port
without a listener. It is closed at once. (Twisted's own UDP port writes two log lines for each socket and closes it a turn
later.)

*Not here*: the meaning of the bytes (`message`), when to send (`attempt`). RFC 5452 4, RFC 7766 8.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Protocol as Seam

from twisted.internet.interfaces import IAddress, IConnector, IReactorFDSet, IReactorTCP, IReactorTime, IReadDescriptor
from twisted.internet.protocol import ClientFactory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.dns.servers import NameServer

MAX_MESSAGE = 65535
READS = 16
"""Datagrams read in one turn of the reactor."""


class DnsReactor(IReactorFDSet, IReactorTCP, IReactorTime):
    """The reactor as the client needs it. Its timers never jump."""


class DatagramReceiver(Seam):
    """Receives messages and errors."""

    def datagram_received(self, data: bytes, host: str, port: int) -> None:
        """Take a datagram from this address."""

    def refused(self, why: str) -> None:
        """Note that the network refuses datagrams to the server."""

    def connected(self) -> bytes:
        """Return the bytes to send: the TCP connection is established."""

    def message_received(self, data: bytes) -> None:
        """Take a complete message that came by TCP."""

    def tcp_failed(self, why: str) -> None:
        """Note that the TCP connection failed or ended, also after the answer."""


class Datagrams(Seam):
    """A UDP socket connected to one server."""

    def send(self, data: bytes) -> None:
        """Send a datagram. Raises OSError."""

    def close(self) -> None:
        """Close the socket. May be repeated."""


OpenUdp = Callable[[NameServer, DatagramReceiver], Datagrams]
"""Opens a socket for this server. Raises OSError."""


@implementer(IReadDescriptor)
class UdpSocket:
    """A UDP socket of this host. The constructor raises OSError."""

    def __init__(self, reactor: IReactorFDSet, server: NameServer, receiver: DatagramReceiver) -> None:
        self._reactor, self._receiver = reactor, receiver
        self._socket = socket.socket(socket.AF_INET6 if server.is_ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.connect((server.host, server.port))
        except OSError:
            self._socket.close()
            raise
        self._is_open = True
        reactor.addReader(self)

    def send(self, data: bytes) -> None:
        """See `Datagrams`."""
        try:
            self._socket.send(data)
        except BlockingIOError:
            pass  # treated like a lost datagram

    def close(self) -> None:
        """See `Datagrams`."""
        if self._is_open:
            self._is_open = False
            self._reactor.removeReader(self)
            self._socket.close()

    def fileno(self) -> int:
        """Called by Twisted."""
        return self._socket.fileno()

    def logPrefix(self) -> str:
        """Called by Twisted."""
        return "dns"

    def doRead(self) -> None:
        """Called by Twisted."""
        for _ in range(READS):
            if not self._is_open:
                return
            try:
                data, address = self._socket.recvfrom(MAX_MESSAGE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._receiver.refused(error.strerror or str(error))
                return
            self._receiver.datagram_received(data, address[0], address[1])

    def connectionLost(self, reason: Failure) -> None:
        """Called by Twisted when the poll reports an error without data, or the reactor stops."""
        if self._is_open:
            error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self.close()
            self._receiver.refused(os.strerror(error) if error else "the socket was closed")


class TcpConnection:
    """A connection to a server. `timeout_s`: limit for opening it."""

    def __init__(self, reactor: IReactorTCP, server: NameServer, receiver: DatagramReceiver, timeout_s: float) -> None:
        self._connector = reactor.connectTCP(server.host, server.port, _StreamFactory(receiver), timeout=timeout_s)

    def close(self) -> None:
        """Close the connection. May be repeated."""
        self._connector.disconnect()


class _StreamFactory(ClientFactory):
    noisy = False

    def __init__(self, receiver: DatagramReceiver) -> None:
        self._receiver = receiver

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """Called by Twisted."""
        return _Stream(self._receiver)

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        """Called by Twisted."""
        self._receiver.tcp_failed(reason.getErrorMessage())


class _Stream(Protocol):
    """The question, and one message in return, each after its length."""

    def __init__(self, receiver: DatagramReceiver) -> None:
        self._receiver = receiver
        self._received = bytearray()

    def connectionMade(self) -> None:
        """Called by Twisted."""
        data = self._receiver.connected()
        self.transport.write(len(data).to_bytes(2, "big") + data)  # type: ignore[union-attr]  # set once connected

    def dataReceived(self, data: bytes) -> None:
        """Called by Twisted."""
        received = self._received
        received += data[: MAX_MESSAGE + 2 - len(received)]
        if len(received) >= 2:
            size = int.from_bytes(received[:2], "big")
            if len(received) >= size + 2:
                self._receiver.message_received(bytes(received[2 : size + 2]))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Called by Twisted."""
        self._receiver.tcp_failed(reason.getErrorMessage())
