"""Makes a user of Cassandra who is no superuser, by Cassandra's own first user: what the database refuses for want of room
it refuses to others alone.

The words are those of the native protocol, version 4: no driver is needed to start services.
"""

from __future__ import annotations

import struct
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Protocol

from tests.services.front import FrontReactor

FIRST = b"cassandra"
"""The first user, and its password."""
ANSWER_S = 5.0
_HEAD = struct.Struct(">BBhBi")
_STARTUP, _AUTHENTICATE, _QUERY, _RESULT, _AUTHENTICATED, _CREDENTIALS = 0x01, 0x03, 0x07, 0x08, 0x10, 0x0F
_ONE = 1


def _frame(kind: int, body: bytes) -> bytes:
    return _HEAD.pack(4, 0, 0, kind, len(body)) + body


def _conversation(username: str, password: str) -> dict[int, bytes]:
    """What is said to each kind of answer."""
    statement = f"CREATE ROLE IF NOT EXISTS {username} WITH PASSWORD = '{password}' AND LOGIN = true".encode()
    login = b"\0%b\0%b" % (FIRST, FIRST)
    return {
        _AUTHENTICATE: _frame(_CREDENTIALS, struct.pack(">i", len(login)) + login),
        _AUTHENTICATED: _frame(_QUERY, struct.pack(">i", len(statement)) + statement + struct.pack(">HB", _ONE, 0)),
    }


class _Making(Protocol):
    """The result: whether it was made, or was there."""

    def __init__(self, username: str, password: str, result: Deferred[bool]) -> None:
        self._words, self._result, self._heard = _conversation(username, password), result, b""

    def connectionMade(self) -> None:
        words = [struct.pack(">H", len(word)) + word for word in (b"CQL_VERSION", b"3.0.0")]
        self._say(_frame(_STARTUP, struct.pack(">H", 1) + b"".join(words)))

    def dataReceived(self, data: bytes) -> None:
        self._heard += data
        while len(self._heard) >= _HEAD.size:
            *_, kind, length = _HEAD.unpack_from(self._heard)
            if len(self._heard) < _HEAD.size + length:
                return
            self._heard = self._heard[_HEAD.size + length :]
            if kind not in self._words:
                self._end(is_made=kind == _RESULT)
                return
            self._say(self._words[kind])

    def connectionLost(self, reason: object = None) -> None:
        self._end(is_made=False)

    def leave(self) -> None:
        """Hear nothing more."""
        cast(ITCPTransport, self.transport).abortConnection()

    def _say(self, words: bytes) -> None:
        cast(ITCPTransport, self.transport).write(words)

    def _end(self, *, is_made: bool) -> None:
        if not self._result.called:
            self._result.callback(is_made)
            self.leave()


async def make_role(reactor: FrontReactor, address: tuple[str, int], username: str, password: str) -> bool:
    """Make it, where it is not there. Return whether it is there now."""
    result: Deferred[bool] = Deferred()
    endpoint = TCP4ClientEndpoint(reactor, *address, timeout=ANSWER_S)
    try:
        making = await connectProtocol(endpoint, _Making(username, password, result))  # type: ignore[no-untyped-call]  # Twisted's
    except ConnectError:
        return False
    late = reactor.callLater(ANSWER_S, making.leave)
    is_made = await result
    if late.active():
        late.cancel()
    return is_made
