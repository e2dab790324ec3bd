"""Visits: every envelope that rests is looked at, for searches, counts, flushes and the reference scan."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

from mailismus.journal.commit import GroupCommit
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.control.giving_way import give_way
from mailismus.queue.providers.log.control.piece_reading import PieceReading
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.read.visit import Look, PieceVisit, Position
from mailismus.queue.throttle import WorkThrottle

PASSED_OVER = 1000
"""Pieces that are passed over at once, for they don't have what is looked for: some milliseconds of the reactor."""


def _never(_: Position) -> bool:
    return False


def _never_there(segment: int, offset: int) -> bool:
    return False


class Visits:
    """Visits to what rests of one queue. `now`: UTC seconds."""

    def __init__(
        self,
        resting: Resting,
        reading: PieceReading,
        commits: GroupCommit,
        throttle: WorkThrottle,
        reactor: IReactorTime,
        now: Callable[[], float],
    ) -> None:
        self._resting, self._reading, self._commits = resting, reading, commits
        self._throttle, self._reactor, self._now = throttle, reactor, now

    async def visit_slowly(self, look: Look) -> bool:
        """As `visit`, at half speed at most: for work that nobody waits for."""
        return await self._visit(look, (0, 0), _never, _never_there, is_slow=True)

    async def visit(
        self,
        look: Look,
        *,
        begin: Position = (0, 0),
        ends_at: Callable[[Position], bool] = _never,
        is_left_out: Callable[[int, int], bool] = _never_there,
        only: SpoolId | None = None,
    ) -> bool:
        """Have every resting envelope looked at, but those that are written meanwhile. Return whether all could be read.
        `begin`: what lies before is left out. `ends_at`: whether the visit ends before this position. `is_left_out`: whether
        what rests from this offset of this segment on, to the end of its piece, need not be looked at. `only`: envelopes of
        this message alone are looked for, in the pieces that may have one."""
        return await self._visit(look, begin, ends_at, is_left_out, only=only)

    async def _visit(
        self,
        look: Look,
        begin: Position,
        ends_at: Callable[[Position], bool],
        is_left_out: Callable[[int, int], bool],
        *,
        only: SpoolId | None = None,
        is_slow: bool = False,
    ) -> bool:
        is_whole, at, passed_over = True, begin, 0
        visit = PieceVisit(look, self._commits.applied_sequence)
        visit.pass_by(begin)
        self._reading.add_visit(visit)
        try:
            for piece in self._resting.all(*begin):
                if not piece.may_have(only):
                    if (position := self._next_in(piece, at)) is not None:
                        at = self._reading.pass_over(piece, position, visit).end
                    passed_over += 1
                    if passed_over % PASSED_OVER == 0:
                        await self._throttle.rest(0.0)
                    continue
                while (position := self._next_in(piece, at)) is not None and not is_left_out(*position):
                    if ends_at(position):
                        return is_whole
                    began_s = self._reactor.seconds()
                    looked = await self._reading.look(piece, position, visit, self._now(), only)
                    is_whole, at = looked.is_whole and is_whole, looked.end
                    if is_slow:
                        await give_way(self._reactor, began_s)
                    await self._throttle.rest(looked.used_s)
        finally:
            self._reading.remove_visit(visit)
        return is_whole

    def _next_in(self, piece: Piece, at: Position) -> Position | None:
        """Where the visit goes on in a piece; None: nothing is left of it. `at`: how far the visit has come."""
        if not self._resting.has(piece):
            return None
        position = max((piece.segment, piece.begin), at)
        end = self._resting.end_of(piece)
        is_in = position[0] == piece.segment and (end is None or position[1] < end)
        return position if is_in else None
