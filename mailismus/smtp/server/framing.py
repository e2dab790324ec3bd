"""The framing of a server session: from bytes to command lines and content, one question at a time.

*Rules*: only CRLF ends a line. While a question to the receiver is open, no byte behind it is parsed. Memory is bounded: a
line by `MAX_LINE`, content by the packet that brought it, replies by `MAX_REPLIES` per turn, bytes behind an open question
by the caller, who stops reading when `is_congested`. `_move` alone sets the state, by the table in `smtp.server.state`.

*Not here*: what lines and content mean (`smtp.server`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from mailismus.smtp import replies
from mailismus.smtp.grammar import has_bad_bytes
from mailismus.smtp.server.limits import MAX_LINE, MAX_REPLIES, MAX_WAITING
from mailismus.smtp.server.state import TRANSITIONS, ServerEvent, ServerState
from mailismus.smtp.transitions import IllegalTransition

# Read for each command: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_CONTENT, _HANDSHAKE, _CLOSED = ServerState.CONTENT, ServerState.HANDSHAKE, ServerState.CLOSED
_CLOSE = ServerEvent.CLOSE
_SPACE = 0x20

Commands = Mapping[ServerState, Mapping[bytes, Callable[[Any, bytes], bytes]]]
"""State -> verb -> method of the engine. It takes the line, and returns the reply; empty if it asked the receiver."""


def _ignore(reply: bytes) -> bytes:
    """No question is open."""
    return b""


class ServerFraming(ABC):
    """What `ServerEngine` is built on: the state, and the bytes of one session.

    `state`: the present state; `last_state`: the state before CLOSED. `is_asking`: whether a question to the receiver is
    open. `is_congested`: whether so many bytes wait that the caller should stop reading. `has_more`: whether commands wait
    because `MAX_REPLIES` was reached; `receive(b"")` goes on. `is_ready`: whether nothing but bytes of the client is waited
    for, and none are kept: no question is open, the state parses commands or content, and the caller has nothing to do but
    to send the reply. All are valid after `receive` and `answer`. The caller only reads them: they are attributes, because a
    property is a call for each packet.
    """

    __slots__ = (
        *("_commands", "_is_line_too_long", "_on_answer", "_out", "_rest", "_table"),
        *("has_more", "is_asking", "is_congested", "is_ready", "last_state", "state"),
    )

    def __init__(self, state: ServerState, table: Commands) -> None:
        self.state = self.last_state = state
        self._table = table
        self._commands = table[state]
        self._is_line_too_long = False
        self.is_asking = self.has_more = self.is_congested = False
        self.is_ready = state is not _HANDSHAKE
        self._on_answer: Callable[[bytes], bytes] = _ignore
        """Takes the answer to the open question."""
        self._out: list[bytes] = []
        """Replies of this turn."""
        self._rest = b""
        """Bytes not yet parsed."""

    # -- what the caller does

    def receive(self, data: bytes) -> bytes:
        """Parse bytes of the client. Return the replies to send."""
        position = 0
        if self.is_ready:
            commands = self._commands
            if commands:
                line, end, rest = data.partition(b"\r\n")  # cheaper than to find the end, and then to cut there
                if end and not rest:  # the usual packet of a client that does not pipeline: one line
                    command = commands.get(line[:4])
                    size = len(line)
                    if command is not None and (size == 4 or line[4] == _SPACE) and size <= MAX_LINE:
                        return command(self, line)
            else:
                position = self._take_content(data, 0)
                if position == len(data) and not self._out:
                    return b""
        elif self._rest:
            data = self._rest + data
        return self._parse(data, position)

    def _parse(self, data: bytes, position: int) -> bytes:
        """Parse bytes from `position` on, and keep those that have to wait."""
        out, size = self._out, len(data)
        while position < size and not self.is_asking and len(out) < MAX_REPLIES:
            state = self.state
            if state is _CONTENT:
                position = self._take_content(data, position)
                continue
            if state is _CLOSED or state is _HANDSHAKE:
                position = size
                break
            stop = data.find(b"\r\n", position)
            if stop < 0:
                if size - position > MAX_LINE + 1:  # discard the line as it comes, up to its end
                    self._is_line_too_long = True
                    position = size - data.endswith(b"\r")
                break
            reply = self._take_line(data[position:stop])
            position = stop + 2
            if reply:
                out.append(reply)
        self._keep(data, position)
        if not out:
            return b""
        joined = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return joined

    def _keep(self, data: bytes, position: int) -> None:
        """Keep the bytes from `position` on, and see what is waited for."""
        state = self.state
        if position == len(data):
            self._rest, self.has_more, self.is_congested = b"", False, False
            self.is_ready = not (self.is_asking or self._is_line_too_long or state is _CLOSED or state is _HANDSHAKE)
        else:
            self._rest = rest = data[position:]
            self.has_more = not self.is_asking and rest.find(b"\r\n") >= 0
            self.is_congested = len(rest) > MAX_WAITING
            self.is_ready = False

    def _take_line(self, line: bytes) -> bytes:
        size = len(line)
        if self._is_line_too_long or size > MAX_LINE:
            self._is_line_too_long = False
            return self._count_error(replies.LINE_TOO_LONG)
        command = self._commands.get(line[:4]) if size == 4 or (size > 4 and line[4] == _SPACE) else None
        if command is None:
            command = self._commands.get(line.partition(b" ")[0].upper())
            if command is None:
                return self._reject(line, replies.UNKNOWN_COMMAND)
        return command(self, line)

    def answer(self, reply: bytes) -> bytes:
        """Take the answer to the open question, then parse the bytes behind it. Return the replies to send."""
        if not self.is_asking or self.state is _CLOSED:
            return b""
        self.is_asking = False
        rest = self._rest
        self.is_ready = not rest
        given = self._on_answer(reply)
        if not rest:
            return given
        if given:
            self._out.append(given)
        return self.receive(b"")

    def close(self) -> None:
        """End the session: no further call of the receiver, no further reply. May be repeated."""
        if self.state is not _CLOSED:
            self.last_state = self.state
            self._move(_CLOSE)
        self.is_asking = self.has_more = self.is_congested = self.is_ready = False
        self._on_answer, self._rest = _ignore, b""

    # -- what the engine adds

    @abstractmethod
    def _take_content(self, data: bytes, position: int) -> int:
        """Take content from `position` on. Return the position behind it."""

    @abstractmethod
    def _count_error(self, reply: bytes) -> bytes:
        """Return the reply to an error of the client; the last one that is allowed ends the session."""

    # -- state and bytes

    def _move(self, event: ServerEvent) -> None:
        """Apply an event to the state. Nothing else sets the state."""
        try:
            state = TRANSITIONS[self.state][event]
        except KeyError:
            raise IllegalTransition(self.state, event) from None
        self.state = state
        self._commands = self._table[state]

    def _reject(self, line: bytes, reply: bytes) -> bytes:
        """Return the reply to a line that is an error. Bad bytes go first, whatever else is wrong."""
        return self._count_error(replies.BAD_BYTES if has_bad_bytes(line) else reply)

    def _ask(self, on_answer: Callable[[bytes], bytes]) -> bytes:
        """Leave a question to the receiver open until `answer`. Return no reply: there is none yet."""
        self.is_asking, self.is_ready, self._on_answer = True, False, on_answer
        return b""
