"""Accepting: turns connections on a listening socket into sessions.

Twisted's own port does the same at twice the cost, and loops without a pause when the system has no descriptors or memory
left.

*Rules*: after EMFILE, ENOMEM and other local errors, stop accepting for `PAUSE_S`: clients wait in the kernel, the rest of
the program goes on. A client that is turned away gets a last reply before any object is made for it. A session that fails to
begin affects only its client.
"""

from __future__ import annotations

import errno
import socket
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorFDSet, IReactorTime, IReadDescriptor
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.connection import AcceptedConnection
from mailismus.net.listen import ListeningSocket
from mailismus.net.peer import plain_host

PAUSE_S = 0.25
LOG_EVERY_S = 10.0
"""Seconds between two log lines about it."""
MAX_ACCEPTS = 100
"""Clients accepted in one turn of the reactor."""
FULL_TURNS = 8
"""Turns with a client each, in a row, after which a second one is expected in a turn."""
_GONE = (
    errno.ECONNABORTED,
    errno.EPERM,
    errno.EPROTO,
    errno.EINTR,
    errno.ENETDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
)
"""Errors of one client: it has gone, or a firewall refused it; the next client may be fine (accept(2))."""
EARLY_SIZE = 4096
"""Bytes read from a client that speaks first, so that it can read our reply: closing with unread bytes resets the
connection."""


class Gate(Protocol):
    """Decides about clients."""

    def admit(self, host: str, made: socket.SocketType) -> IProtocol | bytes:
        """The session for the client at this IP address, or the last reply to it (`b""`: none). `made`: its socket, to be
        used only for its number and for bytes that it has sent already."""


def discard_early_input(made: socket.SocketType) -> bool:
    """Read and discard bytes that the client of a new connection has sent already. Returns whether there were any."""
    try:
        return bool(made.recv(EARLY_SIZE, socket.MSG_DONTWAIT))
    except OSError:
        return False


def turn_away(made: socket.SocketType, words: bytes) -> None:
    """Send a last reply to a client without a session, and close the connection."""
    try:
        if words:
            made.send(words, socket.MSG_DONTWAIT)
    except OSError:
        pass
    made.close()


@implementer(IReadDescriptor)
class Acceptor:
    """Accepts on one listening socket, which it owns from now on. `pauses`: a counter for metrics."""

    log = Logger()

    def __init__(self, listening: ListeningSocket, gate: Gate, poll: IReactorFDSet, clock: IReactorTime) -> None:
        self._socket: socket.socket = listening.bound
        self._gate, self._poll, self._clock = gate, poll, clock
        self._port = listening.port
        self._expected = 1
        self._full_turns = 0
        """Turns in a row that accepted all that were expected."""
        self._pause: IDelayedCall | None = None
        self._logged_at = -LOG_EVERY_S
        self.pauses = 0

    def start(self) -> None:
        """Begin to accept."""
        self._poll.addReader(self)

    def stop(self) -> None:
        """Stop accepting and close the socket; clients that wait in the kernel are reset."""
        self._poll.removeReader(self)
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._socket.close()

    def fileno(self) -> int:
        """The descriptor, as the reactor needs it; -1 when closed."""
        return self._socket.fileno()

    def logPrefix(self) -> str:
        """The name in the reactor's log."""
        return "accept"

    def doRead(self) -> None:
        """Accept the clients that wait."""
        expected, accepted, accept = self._expected, 0, self._socket.accept
        for _ in range(expected):  # clients that have gone count too, so that the turn stays short
            try:
                made, address = accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _GONE:
                    continue
                self._pause_accepting(error)
                return
            accepted += 1
            self._begin(made, address)
            if self._socket.fileno() < 0:  # a session stopped us
                return
        # Accept as many as in the last turn, and one more: the reactor reports further ones at no extra cost. To ask in vain
        # costs more than such a report, so clients that come one by one are accepted one by one.
        if accepted < expected:
            self._expected, self._full_turns = max(1, accepted), 0
            return
        self._full_turns += 1
        if expected > 1 or self._full_turns > FULL_TURNS:
            self._expected = min(MAX_ACCEPTS, accepted + 1)

    def connectionLost(self, reason: Failure) -> None:
        """Close the socket, which the reactor can't poll."""
        self.log.error("Listening on port {port} ended: {reason}", port=self._port, reason=reason.getErrorMessage())
        self._socket.close()

    def _begin(self, made: socket.SocketType, address: tuple[object, ...]) -> None:
        transport = None
        try:
            protocol = self._gate.admit(plain_host(str(address[0])), made)
            if isinstance(protocol, bytes):
                turn_away(made, protocol)
                return
            transport = AcceptedConnection(made, protocol, address, self._poll, self._clock)
            transport.resumeProducing()
            protocol.makeConnection(transport)
        except Exception:
            self.log.failure("A session did not begin")
            if transport is None:
                made.close()
            else:
                transport.abortConnection()

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
