"""Content in pieces: reads the next piece of a message when there is room for it on the way to the host.

*Rules*: one piece is on its way at a time. Each piece is handed on as it was read, without a copy. A piece that is there at
once is no deeper call: a content of many such pieces needs no more stack than one.

*Not here*: sockets and deadlines (`protocol`), where contents are kept (`queue.interface.IContent`).
"""

from __future__ import annotations

from typing import Protocol

from twisted.python.failure import Failure

from mailismus.errors import StorageError
from mailismus.queue.content import IContent


class PieceOwner(Protocol):
    """Takes the pieces of one content."""

    def on_piece(self, piece: bytes) -> bool:
        """Take a piece. Return whether there is room for the next one; if not, call `PieceReader.fetch` when there is."""

    def on_last_piece(self) -> None:
        """The content is complete."""

    def on_unreadable(self) -> None:
        """The content can't be read."""


class PieceReader:
    """Reads one content for its owner."""

    __slots__ = ("_content", "_is_fetching", "_is_wanted", "_owner")

    def __init__(self, owner: PieceOwner, content: IContent) -> None:
        self._owner = owner
        self._content: IContent | None = content
        self._is_fetching = False
        self._is_wanted = False

    def fetch(self) -> None:
        """Read the next piece."""
        self._is_wanted = True
        if self._is_fetching:
            return
        self._is_fetching = True
        while self._is_wanted and self._content is not None:
            self._is_wanted = False
            self._content.next().addCallbacks(self._on_piece, self._on_error)
        self._is_fetching = False

    def close(self) -> None:
        """End the reading: the owner hears nothing more. Harmless when repeated."""
        content, self._content = self._content, None
        if content is not None:
            content.close()

    def _on_piece(self, piece: bytes) -> None:
        if self._content is None:
            return
        if not piece:
            self.close()
            self._owner.on_last_piece()
        elif self._owner.on_piece(piece):
            self.fetch()

    def _on_error(self, failure: Failure) -> None:
        failure.trap(StorageError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        if self._content is not None:
            self.close()
            self._owner.on_unreadable()
