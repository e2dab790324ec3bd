"""The bytes of a large message, in pieces."""

from __future__ import annotations

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorTime

from mailismus.errors import Unavailable

PIECE_BYTES = 64 << 10


class MemoryContent:
    """An `IContent`. Each piece comes in a later turn of the clock, as it does from a disk."""

    at_hand = None

    def __init__(self, content: bytes, clock: IReactorTime) -> None:
        self._content = content
        self._clock = clock
        self._offset = 0
        self._is_closed = False

    @property
    def stored_bytes(self) -> int:
        return len(self._content)

    def next(self) -> Deferred[bytes]:
        if self._is_closed:
            return fail(Unavailable("the content was closed"))
        piece = self._content[self._offset : self._offset + PIECE_BYTES]
        self._offset += len(piece)
        later: Deferred[bytes] = Deferred()
        self._clock.callLater(0, later.callback, piece)
        return later

    def close(self) -> None:
        self._is_closed = True
