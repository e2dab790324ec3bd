"""The UDP socket of one attempt, and the TCP connection that may follow it.

*Rules*: the socket is connected: the kernel draws its port, lets only the server's datagrams in, and tells when nobody
listens there. It is closed at once. Twisted's own UDP port writes two lines to the log for each socket, and closes it a turn
later.

*Not here*: what the bytes mean (`message`), when to send them (`attempt`). RFC 5452 4, RFC 7766 8.
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
"""Datagrams that are read before others have their turn."""


class DnsReactor(IReactorFDSet, IReactorTCP, IReactorTime):
    """What is asked of the reactor. Its timers never jump."""


class DatagramReceiver(Seam):
    """Who hears of what comes."""

    def datagram_received(self, data: bytes, host: str, port: int) -> None:
        """A datagram from there."""

    def refused(self, why: str) -> None:
        """The network says that it can't be delivered."""

    def connected(self) -> bytes:
        """The connection stands: what is to be sent."""

    def message_received(self, data: bytes) -> None:
        """A whole message by TCP."""

    def tcp_failed(self, why: str) -> None:
        """The connection was not made, or has ended. Also after what was asked for has come."""


class Datagrams(Seam):
    """A UDP socket that speaks to one server."""

    def send(self, data: bytes) -> None:
        """Send it. Raises OSError."""

    def close(self) -> None:
        """No more. May be called twice."""


OpenUdp = Callable[[NameServer, DatagramReceiver], Datagrams]
"""A socket for this server. Raises OSError."""


@implementer(IReadDescriptor)
class UdpSocket:
    """`Datagrams` of this host. The constructor raises OSError."""

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
        """`Datagrams`."""
        try:
            self._socket.send(data)
        except BlockingIOError:
            pass  # as if it had been lost on its way

    def close(self) -> None:
        """`Datagrams`."""
        if self._is_open:
            self._is_open = False
            self._reactor.removeReader(self)
            self._socket.close()

    def fileno(self) -> int:
        """Twisted's."""
        return self._socket.fileno()

    def logPrefix(self) -> str:
        """Twisted's."""
        return "dns"

    def doRead(self) -> None:
        """Twisted's."""
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
        """Twisted's: the poll says that there is an error and nothing to read, or the reactor stops."""
        if self._is_open:
            error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self.close()
            self._receiver.refused(os.strerror(error) if error else "the socket was closed")


class TcpConnection:
    """A connection to a server, from now on. `timeout_s`: to be made."""

    def __init__(self, reactor: IReactorTCP, server: NameServer, receiver: DatagramReceiver, timeout_s: float) -> None:
        self._connector = reactor.connectTCP(server.host, server.port, _StreamFactory(receiver), timeout=timeout_s)

    def close(self) -> None:
        """No more. May be called twice."""
        self._connector.disconnect()


class _StreamFactory(ClientFactory):
    noisy = False

    def __init__(self, receiver: DatagramReceiver) -> None:
        self._receiver = receiver

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """Twisted's."""
        return _Stream(self._receiver)

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        """Twisted's."""
        self._receiver.tcp_failed(reason.getErrorMessage())


class _Stream(Protocol):
    """The question, and one message in return, each with its length before it."""

    def __init__(self, receiver: DatagramReceiver) -> None:
        self._receiver = receiver
        self._received = bytearray()

    def connectionMade(self) -> None:
        """Twisted's."""
        data = self._receiver.connected()
        self.transport.write(len(data).to_bytes(2, "big") + data)  # type: ignore[union-attr]  # there is one: it is connected

    def dataReceived(self, data: bytes) -> None:
        """Twisted's."""
        received = self._received
        received += data[: MAX_MESSAGE + 2 - len(received)]
        if len(received) >= 2:
            size = int.from_bytes(received[:2], "big")
            if len(received) >= size + 2:
                self._receiver.message_received(bytes(received[2 : size + 2]))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Twisted's."""
        self._receiver.tcp_failed(reason.getErrorMessage())
