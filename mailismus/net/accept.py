"""Accepting: turns a listening socket into a session for each client.

Twisted's own port does the same at twice the cost, and turns idly round when the system is out of descriptors or memory.

*Rules*: when a client cannot be accepted for want of something, nobody is for `PAUSE_S`: clients wait in the kernel, the
rest of the program goes on. Who is turned away gets his last words before anything is made for him. A session that fails to
begin costs nobody but its client.
"""

from __future__ import annotations

import errno
import socket
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorFDSet, IReactorTime, IReadDescriptor
from twisted.internet.tcp import Server
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.listen import ListeningSocket
from mailismus.net.peer import plain_host

PAUSE_S = 0.25
LOG_EVERY_S = 10.0
"""Seconds between two lines in the log that say so."""
MAX_ACCEPTS = 100
"""Clients accepted in one turn of the reactor."""
_GONE = (
    errno.ECONNABORTED,
    errno.EPERM,
    errno.EPROTO,
    errno.EINTR,
    errno.ENETDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
)
"""This client has gone, or a firewall did not want it; the next one is well (accept(2))."""
READ_SIZE = 32768
"""Bytes of a connection that are read at once. What waits behind a final dot is so much at most: with all else, TLS too, a
connection takes less than 64 KiB."""
EARLY_SIZE = 4096
"""Bytes that are read of a client that speaks first, so that it can read our answer: a close with more unread resets it."""


class Gate(Protocol):
    """Who decides about clients."""

    def admit(self, host: str, made: socket.socket) -> IProtocol | bytes:
        """The session for the client at this IP address, or the last words to it (`b""`: none). `made` is its socket, of
        which only the number matters, and what it has sent already."""


class Accepted(Server):
    """The transport of an accepted connection."""

    bufferSize = READ_SIZE


def discard_early_input(made: socket.socket) -> bool:
    """Whether the client of a new connection has sent something already, which is read away."""
    try:
        return bool(made.recv(EARLY_SIZE, socket.MSG_DONTWAIT))
    except OSError:
        return False


def turn_away(made: socket.socket, words: bytes) -> None:
    """Last words to a client for whom nothing was made."""
    try:
        if words:
            made.send(words, socket.MSG_DONTWAIT)
    except OSError:
        pass
    made.close()


@implementer(IReadDescriptor)
class Acceptor:
    """Serves one listening socket, which it owns from now on. `pauses`: a counter for metrics."""

    log = Logger()

    def __init__(self, listening: ListeningSocket, gate: Gate, poll: IReactorFDSet, clock: IReactorTime) -> None:
        self._socket: socket.socket = listening.bound
        self._gate, self._poll, self._clock = gate, poll, clock
        self._realPortNumber = listening.port  # what a connection of Twisted's shows of its port
        self._connections = 0
        self._expected = 1
        self._pause: IDelayedCall | None = None
        self._logged_at = -LOG_EVERY_S
        self.pauses = 0

    def start(self) -> None:
        """Accept from now on."""
        self._poll.addReader(self)

    def stop(self) -> None:
        """Accept no more, and close the socket; who has not been accepted is reset."""
        self._poll.removeReader(self)
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._socket.close()

    def fileno(self) -> int:
        """As the reactor asks for it; -1 when closed."""
        return self._socket.fileno()

    def logPrefix(self) -> str:
        """For the reactor's log."""
        return "accept"

    def doRead(self) -> None:
        """Clients wait."""
        expected, accepted = self._expected, 0
        for _ in range(expected):  # those that have gone count too: none may hold up the turn
            try:
                made, address = self._socket.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _GONE:
                    continue
                self._pause_accepting(error)
                return
            accepted += 1
            self._begin(made, address)
            if self._socket.fileno() < 0:  # stopped by what a session did
                return
        # The next look is the reactor's, for nothing: as many at once as there were the last time, and one more.
        self._expected = min(MAX_ACCEPTS, accepted + 1) if accepted == expected else max(1, accepted)

    def connectionLost(self, reason: Failure) -> None:
        """The reactor gives the socket up: it cannot be polled."""
        self.log.error(
            "Listening on port {port} ended: {reason}", port=self._realPortNumber, reason=reason.getErrorMessage()
        )
        self._socket.close()

    def _begin(self, made: socket.socket, address: tuple[object, ...]) -> None:
        self._connections += 1
        transport = None
        try:
            protocol = self._gate.admit(plain_host(str(address[0])), made)
            if isinstance(protocol, bytes):
                turn_away(made, protocol)
                return
            # It asks for Twisted's own Port, of which it wants the number.
            transport = Accepted(made, protocol, address, self, self._connections, self._poll)  # type: ignore[arg-type]
            protocol.makeConnection(transport)
        except Exception:
            self.log.failure("A session did not begin")
            if transport is None:
                made.close()
            else:
                transport.abortConnection()  # type: ignore[no-untyped-call]  # Twisted's

    def _pause_accepting(self, error: OSError) -> None:
        self.pauses += 1
        now = self._clock.seconds()
        if not 0 <= now - self._logged_at < LOG_EVERY_S:
            self._logged_at = now
            self.log.warn(
                "Clients wait, none can be accepted ({number} times so far): {reason}", number=self.pauses, reason=error
            )
        self._poll.removeReader(self)
        self._pause = self._clock.callLater(PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._poll.addReader(self)
