"""Visits: every envelope that rests is looked at, piece by piece, beside all other work."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope

Look = Callable[[FoundEnvelope, Piece], None]
"""Looks at an envelope of a piece."""

Visit = Callable[[Look], Coroutine[Deferred[Any], Any, bool]]
"""Has every resting envelope looked at; tells whether all could be read."""


class PartVisit(Protocol):
    """Has resting envelopes looked at (`control.visits.Visits.visit`)."""

    def __call__(
        self, look: Look, *, begin: tuple[int, int] = ..., ends_at: Callable[[Piece], bool] = ...
    ) -> Coroutine[Deferred[Any], Any, bool]:
        """Return whether all could be read."""


class PieceVisit:
    """A visit to all that rests. What is loaded meanwhile from pieces that it has not come to is looked at before."""

    def __init__(self, look: Look, newest: int) -> None:
        """`newest`: sequence number of the newest batch. What is written later is new, or was looked at where it was."""
        self._look, self._newest = look, newest
        self._at = (0, -1)

    def pass_by(self, piece: Piece) -> None:
        """It has come to this piece."""
        self._at = (piece.segment, piece.begin)

    def look_at(self, one: FoundEnvelope, piece: Piece) -> None:
        """Look at an envelope of this piece."""
        if one.place.sequence <= self._newest:
            self._look(one, piece)

    def see(self, one: FoundEnvelope, piece: Piece) -> None:
        """An envelope of this piece is being loaded."""
        if (piece.segment, piece.begin) > self._at:
            self.look_at(one, piece)
