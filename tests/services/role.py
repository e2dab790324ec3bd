"""Makes a user of Cassandra who is no superuser, by Cassandra's own first user: what the database refuses for want of room
it refuses to others alone.

The words are those of the native protocol, version 4: no driver is needed to start services.
"""

from __future__ import annotations

import struct

from twisted.internet.defer import Deferred

from tests.services.asking import Question, ask
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


class _Making(Question):
    """The answer: whether it was made, or was there."""

    def __init__(self, username: str, password: str, answer: Deferred[bool]) -> None:
        super().__init__(answer)
        self._words = _conversation(username, password)

    def connectionMade(self) -> None:
        words = [struct.pack(">H", len(word)) + word for word in (b"CQL_VERSION", b"3.0.0")]
        self.say(_frame(_STARTUP, struct.pack(">H", 1) + b"".join(words)))

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
            self.say(self._words[kind])

    def connectionLost(self, reason: object = None) -> None:
        self._end(is_made=False)

    def _end(self, *, is_made: bool) -> None:
        if not self._answer.called:
            self._answer.callback(is_made)
            self.leave()


async def make_role(reactor: FrontReactor, address: tuple[str, int], username: str, password: str) -> bool:
    """Make it, where it is not there. Return whether it is there now."""
    return await ask(reactor, address, ANSWER_S, lambda answer: _Making(username, password, answer))
