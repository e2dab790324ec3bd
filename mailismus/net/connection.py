"""The connection of an accepted client: a plain TCP socket, read and written without waiting.

Twisted's own transport does the same at several times the cost: names for logs of each connection, four more system calls,
and three calls between the socket and the session for each packet.

*Rules*: bytes keep the order of the calls of `send`. Bytes that the kernel does not take wait here, and the reactor tells
when it takes more. `protocol.connectionLost` is called once, as the last call. The socket is in blocking mode, and every
call says MSG_DONTWAIT: a system call less for each client. It is closed without shutdown(2), since no other process has it.

*Not here*: TLS (`net.tls` sets `protocol` to its pump), transports of other kinds (`net.send`, `net.close`).
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Iterable

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IProtocol, IReactorFDSet, IReactorTime, IReadWriteDescriptor, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

READ_SIZE = 32768
"""Bytes of a connection read at once, and so the most that can wait behind a final dot. In all, with TLS, a connection takes
less than 64 KiB."""
_NO_WAIT = socket.MSG_DONTWAIT.value
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: a closed connection is reset, and unsent bytes are discarded."""
_TRY_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
# Twisted's classes are not annotated.
_DONE = Failure(ConnectionDone())  # type: ignore[no-untyped-call]
_LOST = Failure(ConnectionLost())  # type: ignore[no-untyped-call]
_ABORTED = Failure(ConnectionAborted())  # type: ignore[no-untyped-call]


@implementer(ITransport, IReadWriteDescriptor)
class AcceptedConnection:
    """One connection, which owns its socket. `protocol`: takes the bytes; None: the connection has ended."""

    __slots__ = (
        *("__weakref__", "_address", "_clock", "_is_closing", "_is_over", "_on_drained", "_poll", "_socket", "_waiting"),
        "protocol",
    )

    def __init__(
        self,
        made: socket.SocketType,
        protocol: IProtocol,
        address: tuple[object, ...],
        poll: IReactorFDSet,
        clock: IReactorTime,
    ) -> None:
        """`address`: of the client, as accept(2) tells it. `resumeProducing` begins to read."""
        self._socket, self._address, self._poll, self._clock = made, address, poll, clock
        self.protocol: IProtocol | None = protocol
        self._is_closing = self._is_over = False
        self._waiting = b""
        """Bytes that the kernel did not take."""
        self._on_drained: Callable[[], None] | None = None

    # -- sending

    def send(self, data: bytes) -> bool:
        """Send these bytes. Return whether none wait. On a connection that is over they are lost."""
        if self._waiting:
            self._waiting += data
            return False
        if self._is_over:
            return True
        try:
            sent = self._socket.send(data, _NO_WAIT)
        except OSError:  # full or broken: `doWrite` sees which
            sent = 0
        if sent == len(data):
            return True
        self._waiting = data[sent:]
        self._poll.addWriter(self)
        return False

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the kernel did not take."""
        return len(self._waiting)

    def when_drained(self, done: Callable[[], None]) -> None:
        """Call `done` once when no bytes wait any more; never if the connection ends before. Bytes wait now."""
        self._on_drained = done

    def write(self, data: bytes) -> None:
        self.send(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.send(b"".join(data))

    # -- ending

    def close(self) -> None:
        """Close the connection after all bytes are sent: now, if none wait."""
        if not (self._waiting or self._is_closing or self._is_over):
            self.connectionLost(_DONE)
        else:
            self.loseConnection()

    def loseConnection(self) -> None:
        """Close the connection after all bytes are sent, in a later turn of the reactor."""
        if not (self._is_closing or self._is_over):
            self._is_closing = True
            self._poll.removeReader(self)
            self._poll.addWriter(self)

    def abortConnection(self) -> None:
        """Reset the connection, in a later turn of the reactor. Nothing more is read or sent."""
        if self._is_over:
            return
        self._is_over = True
        self._waiting = b""
        self._poll.removeReader(self)
        self._poll.removeWriter(self)
        self._clock.callLater(0, self.connectionLost, _ABORTED)

    def connectionLost(self, reason: Failure) -> None:
        """Close the socket, and tell the protocol. May be repeated."""
        ours = self._socket
        if ours.fileno() < 0:
            return
        self._is_over = True
        if reason is not _ABORTED:
            self._poll.removeReader(self)
            if self._waiting or self._is_closing:
                self._waiting = b""
                self._poll.removeWriter(self)
        else:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        ours.close()
        self._on_drained = None
        protocol, self.protocol = self.protocol, None  # and no cycle of references is left
        if protocol is not None:
            protocol.connectionLost(reason)

    # -- what the reactor calls

    def fileno(self) -> int:
        """The descriptor; -1 when closed."""
        return self._socket.fileno()

    def logPrefix(self) -> str:
        """The name in the reactor's log."""
        return "connection"

    def doRead(self) -> None:
        """Give the protocol the bytes that have come."""
        try:
            data = self._socket.recv(READ_SIZE, _NO_WAIT)
        except OSError as error:
            if error.errno not in _TRY_AGAIN:
                self.connectionLost(_LOST)
            return
        if not data:
            self.connectionLost(_DONE)
            return
        protocol = self.protocol
        if protocol is not None:
            protocol.dataReceived(data)

    def doWrite(self) -> None:
        """Send waiting bytes."""
        if self._waiting:
            try:
                sent = self._socket.send(self._waiting, _NO_WAIT)
            except OSError as error:
                if error.errno not in (*_TRY_AGAIN, errno.ENOBUFS):
                    self.connectionLost(_LOST)
                return
            self._waiting = self._waiting[sent:]
            if self._waiting:
                return
        done, self._on_drained = self._on_drained, None
        if self._is_closing:
            self.connectionLost(_DONE)
            return
        self._poll.removeWriter(self)
        if done is not None:
            done()

    # -- reading, addresses

    def pauseProducing(self) -> None:
        """Stop reading."""
        self._poll.removeReader(self)

    def resumeProducing(self) -> None:
        """Read from now on."""
        if not (self._is_closing or self._is_over):
            self._poll.addReader(self)

    def getPeer(self) -> IPv4Address | IPv6Address:
        return _address_of(self._address)

    def getHost(self) -> IPv4Address | IPv6Address:
        return _address_of(self._socket.getsockname())


def _address_of(address: tuple[object, ...]) -> IPv4Address | IPv6Address:
    host, port = str(address[0]), int(str(address[1]))
    return IPv6Address("TCP", host, port) if ":" in host else IPv4Address("TCP", host, port)
