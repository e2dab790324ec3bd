"""A scripted SMTP server that receives mail and, where told to, misbehaves.

The script says for a step what the sink does there instead of what it should; a step is named by what the client sent:
`greeting EHLO HELO MAIL RCPT DATA dot RSET QUIT`. An action is bytes (said as they are), one of the words below, or a
function of the sink that gives either. It records every message whose final dot it saw, and what it answered.

`ahead` is what it does about commands that were sent ahead, which come in one packet with another command before them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from twisted.internet.interfaces import ITransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure


class Act(enum.Enum):
    """What a sink can do beside talking."""

    CLOSE = "close"
    """Close the connection in good order, without a word."""
    ABORT = "abort"
    """Reset it."""
    SILENCE = "silence"
    """Say nothing, ever again."""


class Ahead(enum.Enum):
    """What a sink can do about commands that were sent ahead."""

    TAKE = "take"
    """As it should."""
    DROP = "drop"
    """It never sees them: what stands in the buffer is thrown away with each command."""
    REFUSE = "refuse"
    """503, as if they made no sense."""
    CLOSE = "close"
    """Close the connection."""
    HANG = "hang"
    """Answer nothing any more, not even the first of them."""
    DOTS = "dots"
    """Drop those behind a final dot, as well as the dot."""


Action = bytes | Act
Script = dict[str, Action | Callable[["Sink"], Action]]


class Received:
    """One message: its envelope, its content as on the wire without the final dot, and what the sink said at the end."""

    def __init__(self, sender: bytes, recipients: list[bytes], content: bytes) -> None:
        self.sender, self.recipients, self.content = sender, recipients, content
        self.answer: Action = b""

    @property
    def is_acknowledged(self) -> bool:
        """Whether the client was told that it was taken."""
        return isinstance(self.answer, bytes) and self.answer[:1] == b"2"


class Sink(Protocol):
    """One connection."""

    def __init__(self, factory: SinkFactory) -> None:
        self.sinks = factory
        self.number = len(factory.connections)
        self.commands: list[bytes] = []
        self.messages = 0
        self._buffer = b""
        self._in_content = self._is_mute = self._has_sender = False
        self._sender = b""
        self._accepted: list[bytes] = []
        self.is_closed = False
        self.leave_after = 0
        """Bytes of content after which it resets the connection, having said `last_word`; 0: it does not."""
        self.last_word = b""

    def connectionMade(self) -> None:
        self.sinks.open += 1
        self.sinks.most_open = max(self.sinks.most_open, self.sinks.open)
        self.do("greeting", b"220 sink ESMTP\r\n")

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.is_closed = True
        self.sinks.open -= 1

    def dataReceived(self, data: bytes) -> None:
        self.sinks.bytes_received += len(data)
        if self._in_content and self.leave_after:
            self.leave_after -= len(data)
            if self.leave_after <= 0:
                self._leave()
                return
        self._buffer += data
        lines = 0
        while not self._is_mute:
            if self._in_content:
                if not self._take_content():
                    return
            else:
                line, end, rest = self._buffer.partition(b"\r\n")
                if not end:
                    return
                self._buffer = rest
                lines += 1
                if lines > 1 or rest:
                    self._meet(line, is_first=lines == 1)
                else:
                    self._command(line)

    def _leave(self) -> None:
        self.leave_after, self._is_mute = 1, True
        if self.last_word:
            self.transport_of().write(self.last_word)
            self.transport_of().loseConnection()
        else:
            self.transport_of().abortConnection()  # type: ignore[attr-defined]  # TCP's and the fake's have it

    def _meet(self, line: bytes, is_first: bool) -> None:
        """One of several commands in a packet."""
        ahead = self.sinks.ahead
        if ahead is Ahead.HANG:
            self._is_mute = True
        elif is_first or ahead in (Ahead.TAKE, Ahead.DOTS):
            self._command(line)
            if ahead is Ahead.DROP:
                self._buffer = b""
        elif ahead is Ahead.CLOSE:
            self._is_mute = True
            self.transport_of().loseConnection()
        else:
            self.commands.append(line)
            self.transport_of().write(b"503 5.5.1 Bad sequence of commands\r\n")

    def _take_content(self) -> bool:
        if self._buffer.startswith(b".\r\n"):
            content, rest = b"", self._buffer[3:]
        else:
            at = self._buffer.find(b"\r\n.\r\n")
            if at < 0:
                return False
            content, rest = self._buffer[: at + 2], self._buffer[at + 5 :]
            if rest and self.sinks.ahead is Ahead.DOTS:
                self._buffer = b""
                return False
        self._buffer, self._in_content = rest, False
        self.messages += 1
        received = Received(self._sender, self._accepted, content)
        self.sinks.received.append(received)
        received.answer = self.do("dot", b"250 2.0.0 Ok: queued\r\n")
        self._sender, self._accepted = b"", []
        return True

    def _command(self, line: bytes) -> None:
        self.commands.append(line)
        verb = line[:4].upper().decode("ascii", "replace")
        if verb == "EHLO":
            self.do(verb, b"250-sink\r\n250-PIPELINING\r\n250-SIZE 100000000\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n")
        elif verb == "HELO":
            self.do(verb, b"250 sink\r\n")
        elif verb == "MAIL":
            self._sender, self._accepted = line.partition(b"<")[2].partition(b">")[0], []
            said = self.do(verb, b"250 2.1.0 Ok\r\n")
            self._has_sender = isinstance(said, bytes) and said[:1] == b"2"
        elif verb == "RCPT" and not self._has_sender:
            self.do("", b"503 5.5.1 no sender\r\n")
        elif verb == "RCPT":
            recipient = line.partition(b"<")[2].rpartition(b">")[0]
            said = self.do(verb, b"250 2.1.5 Ok\r\n")
            if isinstance(said, bytes) and said[:1] == b"2":
                self._accepted.append(recipient)
        elif verb == "DATA":
            said = self.do(verb, b"354 go\r\n" if self._accepted else b"503 5.5.1 no recipients\r\n")
            self._in_content = isinstance(said, bytes) and b"354" in said
        elif verb == "QUIT":
            if self.do(verb, b"221 2.0.0 Bye\r\n") is not Act.SILENCE:
                self.transport_of().loseConnection()
        else:
            self.do(verb, b"250 2.0.0 Ok\r\n")

    def do(self, step: str, normally: bytes) -> Action:
        """Act as the script says; gives what was done."""
        action = self.sinks.script.get(step, normally)
        if callable(action):
            action = action(self)
        if isinstance(action, bytes):
            if not self._is_mute:
                self.transport_of().write(action)
        else:
            self._is_mute = True
            if action is Act.CLOSE:
                self.transport_of().loseConnection()
            elif action is Act.ABORT:
                self.transport_of().abortConnection()  # type: ignore[attr-defined]  # TCP's and the fake's have it
        return action

    def transport_of(self) -> ITransport:
        """The transport, which is there."""
        assert self.transport is not None
        return self.transport


class FewConnections:
    """The greeting of a sink that takes so many connections at the same time, and does this with others."""

    def __init__(self, most: int, over: Action = b"421 4.7.0 too many connections\r\n") -> None:
        self._most, self._over = most, over
        self.refused = 0

    def __call__(self, sink: Sink) -> Action:
        if sink.sinks.open <= self._most:
            return b"220 sink ESMTP\r\n"
        self.refused += 1
        return self._over


class SinkFactory(Factory):
    """All connections of one sink; `script` may be changed at any time."""

    noisy = False

    def __init__(self, script: Script | None = None, ahead: Ahead = Ahead.TAKE) -> None:
        self.script: Script = script or {}
        self.ahead = ahead
        self.connections: list[Sink] = []
        self.received: list[Received] = []
        self.bytes_received = 0
        self.open = self.most_open = 0

    def buildProtocol(self, addr: object) -> Sink:
        sink = Sink(self)
        self.connections.append(sink)
        return sink

    def acknowledged(self) -> list[bytes]:
        """Recipients of messages that were acknowledged, one for each time."""
        return [recipient for message in self.received if message.is_acknowledged for recipient in message.recipients]
