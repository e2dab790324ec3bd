"""A sink: a mail host that answers as its manners say and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IAddress, IDelayedCall, IReactorTime
from twisted.internet.protocol import ServerFactory
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure

from mailismus.demo.manners import HostManners

MAX_CONNECTIONS = 200
_DONE = b"250 2.0.0 OK"


class SinkSession(LineReceiver):
    """One connection. Commands are read one after the other, each when the one before it has its reply."""

    MAX_LENGTH = 1 << 20

    def __init__(self, sinks: SinkHost) -> None:
        self._sinks = sinks
        self._sender = b""
        self._is_content = False
        self._delayed: IDelayedCall | None = None

    def connectionMade(self) -> None:
        """Greet, and leave if the greeting refuses."""
        greeting = self._sinks.manners.greet(self._sinks.opened())
        self._reply(greeting, is_last=greeting.startswith(b"4"))

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Count it out."""
        self._sinks.closed()
        if self._delayed is not None and self._delayed.active():
            self._delayed.cancel()

    def lineReceived(self, line: bytes) -> None:
        """Obey a command, or skip a line of content."""
        if self._is_content:
            if line == b".":
                self._is_content = False
                self._reply(self._sinks.manners.answer_content())
            return
        verb, _, rest = line.partition(b" ")
        self._reply(self._answer(verb.upper(), rest), is_last=verb.upper() == b"QUIT")

    def _answer(self, verb: bytes, rest: bytes) -> bytes:
        manners, now = self._sinks.manners, self._sinks.monotonic()
        if verb == b"EHLO":
            return b"250-mx\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES"
        if verb == b"MAIL":
            self._sender = _address(rest)
            return manners.answer_sender(now)
        if verb == b"RCPT":
            return manners.answer_recipient(self._sender, _address(rest), now)
        if verb == b"DATA":
            self._is_content = True
            return b"354 Go on"
        if verb == b"QUIT":
            return b"221 2.0.0 Bye"
        return _DONE if verb in (b"HELO", b"RSET", b"NOOP") else b"502 5.5.1 Not here"

    def _reply(self, reply: bytes, *, is_last: bool = False) -> None:
        delay_s = self._sinks.manners.delay_s
        if delay_s and not is_last:
            self.pauseProducing()
            self._delayed = self._sinks.clock.callLater(delay_s, self._reply_late, reply)
            return
        self.sendLine(reply)
        if is_last:
            self.transport.loseConnection()  # type: ignore[union-attr] # a connection that was made has one

    def _reply_late(self, reply: bytes) -> None:
        self.sendLine(reply)
        self.resumeProducing()


class SinkHost(ServerFactory[SinkSession]):
    """One mail host."""

    noisy = False

    def __init__(self, manners: HostManners, clock: IReactorTime, monotonic: Callable[[], float]) -> None:
        self.manners, self.clock, self.monotonic = manners, clock, monotonic
        self.open = 0
        """Connections."""

    def opened(self) -> int:
        """Count a connection; return how many there are."""
        self.open += 1
        return self.open

    def closed(self) -> None:
        """Count a connection out."""
        self.open -= 1

    def buildProtocol(self, addr: IAddress | None) -> SinkSession | None:
        """None: there are too many; Twisted closes this one."""
        return SinkSession(self) if self.open < MAX_CONNECTIONS else None


def _address(argument: bytes) -> bytes:
    """The address between the angle brackets of MAIL or RCPT."""
    return argument.partition(b"<")[2].partition(b">")[0]
