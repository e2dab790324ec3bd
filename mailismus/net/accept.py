"""Accepting: turns a listening socket into a session for each client.

Twisted's own port does the same at twice the cost, and turns idly round when the system is out of descriptors or memory.

*Rules*: when a client cannot be accepted for want of something, nobody is for `PAUSE_S`: clients wait in the kernel, the
rest of the program goes on. A session that fails to begin costs nobody but its client.
"""

from __future__ import annotations

import errno
import socket

from twisted.internet.interfaces import IDelayedCall, IProtocolFactory, IReactorFDSet, IReactorTime, IReadDescriptor
from twisted.internet.tcp import Server
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.listen import Listening

PAUSE_S = 0.25
MAX_ACCEPTS = 100
"""Clients accepted in one turn of the reactor."""
_GONE = (errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.EINTR, errno.ENETDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH)
"""This client has gone, or a firewall did not want it; the next one is well (accept(2))."""


@implementer(IReadDescriptor)
class Acceptor:
    """Serves one listening socket, which it owns from now on. `pauses`: a counter for metrics."""

    log = Logger()

    def __init__(self, listening: Listening, factory: IProtocolFactory, poll: IReactorFDSet, clock: IReactorTime) -> None:
        self._socket: socket.socket = listening.bound
        self._factory, self._poll, self._clock = factory, poll, clock
        self._realPortNumber = listening.port  # what a connection of Twisted's shows of its port
        self._connections = 0
        self._expected = 1
        self._pause: IDelayedCall | None = None
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
        while accepted < expected:
            try:
                made, address = self._socket.accept()
            except BlockingIOError:
                break
            except OSError as trouble:
                if trouble.errno in _GONE:
                    continue
                self._wait(trouble)
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
        protocol = self._factory.buildProtocol(None)  # type: ignore[arg-type]  # ours looks at the transport instead
        if protocol is None:
            made.close()
            return
        # It asks for Twisted's own Port, of which it wants the number.
        transport = Server(made, protocol, address, self, self._connections, self._poll)  # type: ignore[arg-type]
        try:
            protocol.makeConnection(transport)
        except Exception:
            self.log.failure("A session did not begin")
            transport.abortConnection()  # type: ignore[no-untyped-call]  # Twisted's

    def _wait(self, trouble: OSError) -> None:
        self.pauses += 1
        if self.pauses & (self.pauses - 1) == 0:  # the 1st, 2nd, 4th, 8th..
            self.log.warn(
                "Clients wait, none can be accepted ({number} times so far): {reason}", number=self.pauses, reason=trouble
            )
        self._poll.removeReader(self)
        self._pause = self._clock.callLater(PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._poll.addReader(self)
