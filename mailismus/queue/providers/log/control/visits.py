"""Visits: every envelope that rests is looked at, for searches, counts, flushes and the reference scan."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

from mailismus.journal.commit import GroupCommit
from mailismus.queue.providers.log.control.giving_way import give_way
from mailismus.queue.providers.log.control.piece_reading import EnvelopeChoice, PieceReading
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.read.visit import Look, PieceVisit


class Visits:
    """Visits to what rests of one queue. `now`: UTC seconds."""

    def __init__(
        self,
        resting: Resting,
        reading: PieceReading,
        commits: GroupCommit,
        reactor: IReactorTime,
        now: Callable[[], float],
    ) -> None:
        self._resting, self._reading, self._commits, self._reactor, self._now = resting, reading, commits, reactor, now

    async def visit_slowly(self, look: Look) -> bool:
        """As `visit`, at half speed: for work that nobody waits for."""
        return await self._visit(look, is_slow=True)

    async def visit(
        self, look: Look, *, begin: tuple[int, int] = (0, 0), ends_at: Callable[[Piece], bool] = lambda _: False
    ) -> bool:
        """Have every resting envelope looked at, but those that are written meanwhile. Return whether all could be read.
        `begin`: segment and offset; pieces before are left out. `ends_at`: whether the visit ends before this piece."""
        return await self._visit(look, is_slow=False, begin=begin, ends_at=ends_at)

    async def _visit(
        self,
        look: Look,
        *,
        is_slow: bool,
        begin: tuple[int, int] = (0, 0),
        ends_at: Callable[[Piece], bool] = lambda _: False,
    ) -> bool:
        is_whole = True
        visit = PieceVisit(look, self._commits.applied_sequence)
        self._reading.add_visit(visit)
        try:
            for piece in self._resting.all(*begin):
                if ends_at(piece):
                    break
                if not self._resting.has(piece):
                    continue
                began_s = self._reactor.seconds()

                def see(one: FoundEnvelope, _: float, piece: Piece = piece) -> EnvelopeChoice:
                    visit.look_at(one, piece)
                    return EnvelopeChoice.LEAVE

                is_whole = await self._reading.read(piece, see, self._now(), visit) and is_whole
                if is_slow:
                    await give_way(self._reactor, began_s)
        finally:
            self._reading.remove_visit(visit)
        return is_whole
