"""Visits: every envelope that rests is looked at, slice by slice, beside all other work."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.read.envelopes import SeenEnvelope

Look = Callable[[SeenEnvelope, Piece], None]
"""Looks at an envelope of a piece."""

Visit = Callable[[Look], Coroutine[Deferred[Any], Any, bool]]
"""Has every resting envelope looked at; tells whether all could be read."""

Position = tuple[int, int]
"""Number of a segment, and an offset in it where a batch begins."""


class PartVisit(Protocol):
    """Has resting envelopes looked at (`control.visits.Visits.visit`)."""

    def __call__(
        self,
        look: Look,
        *,
        begin: Position = ...,
        ends_at: Callable[[Position], bool] = ...,
        is_left_out: Callable[[int, int], bool] = ...,
        only: SpoolId | None = ...,
    ) -> Coroutine[Deferred[Any], Any, bool]:
        """Return whether all could be read."""


class PieceVisit:
    """A visit to all that rests. What is loaded meanwhile from places that it has not come to is looked at before."""

    def __init__(self, look: Look, newest: int) -> None:
        """`newest`: sequence number of the newest batch. What is written later is new, or was looked at where it was."""
        self._look, self._newest = look, newest
        self._at: Position = (0, 0)

    def pass_by(self, at: Position) -> None:
        """All before this position was looked at, or need not be."""
        self._at = at

    def see(self, one: SeenEnvelope, piece: Piece) -> None:
        """An envelope of this piece is read, or loaded."""
        if one.place.sequence <= self._newest and (one.segment, one.batch) >= self._at:
            self._look(one, piece)
