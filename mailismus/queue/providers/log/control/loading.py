"""Loading: resting envelopes are read from the log when they are due, or when somebody asks for them.

    piece due -> read in a worker -> what is due goes to the working set, of the rest the earliest due times are known

*Rules*: at most `MOST_LOADED` entries are in memory for the sake of being due; others wait in the log. While a start learns
what rests, a take that finds nothing waits for what is learnt next.

*Not here*: what rests where (`index.resting`), how a piece is read (`control.piece_reading`), what a start learns
(`control.learning`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Message, Shares
from mailismus.queue.providers.log.control.learning import Learning
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.piece_reading import EnvelopeChoice, PieceReading
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope

AHEAD_S = 600.0
"""Seconds before their time that resting entries are loaded, while there is room, when their piece is read anyway: so it
is read less often."""

MOST_LOADED = 20_000
"""Entries in memory that are not out, beyond which no more are loaded."""

MOST_NEAR = MOST_LOADED // 2
"""Entries in memory that are not out, beyond which only those are loaded that are due, and of senders that are not passed
over."""

PIECES_A_TAKE = 8
"""Pieces that one take loads from at most."""

MOST_PICKED = 8
"""Messages, beyond which all of every piece is read for those that are asked for, in place of what may be theirs."""

TAKE_S = 0.05
"""Seconds after which a take that has something reads no further piece."""


class PieceLoading:
    """Loads what rests of one queue. `now`: UTC seconds; `ahead_s`: in place of `AHEAD_S`."""

    def __init__(
        self,
        reading: PieceReading,
        learning: Learning,
        resting: Resting,
        ledger: LogLedger,
        reactor: IReactorTime,
        now: Callable[[], float],
        ahead_s: float | None = None,
    ) -> None:
        self._reading, self._learning, self._resting, self._ledger = reading, learning, resting, ledger
        self._reactor, self._now, self._ahead_s = reactor, now, ahead_s
        self._is_stopped = False
        self._sleeping: list[Deferred[None]] = []
        """Takes that wait for news."""

    @property
    def has_room(self) -> bool:
        """Whether more entries may be loaded."""
        return self._has_room(MOST_LOADED)

    def _has_room(self, most: int) -> bool:
        return self._ledger.working_set.has_room(most, self._reactor.seconds())

    # when due

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]] | list[Message]:
        """As `IQueue.take`."""
        working_set = self._ledger.working_set
        if self._resting.is_empty or not self.has_room:
            return working_set.take(area, limit, now, shares)
        if self._due_piece(area, now) is None:
            taken = working_set.take(area, limit, now, shares)
            if taken or not self._learning.is_to_be_learnt:
                return taken
        return Deferred.fromCoroutine(self._take(area, limit, now, shares))

    async def _take(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        while True:
            taken = await self._take_due(area, limit, now, shares)
            if taken or not self._learning.is_to_be_learnt:
                return taken
            news: Deferred[None] = Deferred()
            self._sleeping.append(news)
            await news

    async def _take_due(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        """Take what is in memory, and what is known to be due. Of pieces of which nothing is known, read those alone that
        the positions lead to."""
        working_set, began_s, pieces = self._ledger.working_set, self._reactor.seconds(), 0
        taken = working_set.take(area, limit, now, shares)
        limit -= sum(len(message.entries) for message in taken)
        while limit > 0 and not self._is_stopped and (piece := self._due_piece(area, now)) is not None and self.has_room:
            if taken and self._reactor.seconds() - began_s >= TAKE_S:
                break
            if not piece.is_known and await self._reading.outline(piece):
                due_in = piece.due_in(area) if self._resting.has(piece) else None
                if due_in is not None and due_in <= now:
                    continue  # it is due
            elif pieces == PIECES_A_TAKE or not await self._load(piece, now):
                break
            else:
                pieces += 1
            more = working_set.take(area, limit, now, shares)
            limit -= sum(len(message.entries) for message in more)
            taken += more
        if limit > 0:
            self._due_piece(area, now)  # one that is released is due when the caller asks again
        return taken

    def _due_piece(self, area: Area, now: float) -> Piece | None:
        """Return a piece to read. One that was held back for its senders' sake is due as soon as there is room again: one at
        a time, so that none is read in vain."""
        piece = self._resting.due_piece(area, now, is_learnt_anyway=self._learning.is_to_be_learnt)
        if piece is None and self._resting.has_held(area) and self._has_room(MOST_NEAR // 2):
            return self._resting.release(area)
        return piece

    def tell_news(self) -> None:
        """Something may be taken now, or is known: takes that wait look again."""
        sleeping, self._sleeping = self._sleeping, []
        for news in sleeping:
            news.callback(None)

    async def _load(self, piece: Piece, now: float) -> bool:
        """Read a piece, and load what is due or nearly so. Return whether it could be read."""
        near = now + (AHEAD_S if self._ahead_s is None else self._ahead_s)
        is_passed_over = self._ledger.working_set.is_passed_over

        def choose(one: FoundEnvelope, due_at: float) -> EnvelopeChoice:
            is_held = due_at <= now and is_passed_over(one.entries[0].area, one.message.sender)
            most = MOST_NEAR if is_held or due_at > now else MOST_LOADED
            if due_at <= near and self._has_room(most):
                return EnvelopeChoice.LOAD
            return EnvelopeChoice.HOLD if is_held else EnvelopeChoice.LEAVE

        return await self._reading.read(piece, choose, now)

    # when asked for

    async def load_messages(self, spool_ids: Collection[SpoolId]) -> None:
        """Load all that rests of these messages."""
        now = self._now()

        def choose(one: FoundEnvelope, _: float) -> EnvelopeChoice:
            return EnvelopeChoice.LOAD if one.message.spool_id in spool_ids else EnvelopeChoice.LEAVE

        are_few = len(spool_ids) <= MOST_PICKED
        for piece in self._resting.all():
            if not self._resting.has(piece):
                continue
            if not are_few:
                await self._reading.read(piece, choose, now)
            elif any(map(piece.may_have, spool_ids)):
                await self._reading.pick(piece, spool_ids, choose, now)

    async def load_segments(self, numbers: Collection[int], most: int) -> None:
        """Load what rests in these segments, or has its content there, while there is room: about `most` envelopes."""
        loaded = 0

        def choose(one: FoundEnvelope, _: float) -> EnvelopeChoice:
            nonlocal loaded
            if not (_is_in(one, numbers) and self.has_room):
                return EnvelopeChoice.LEAVE
            loaded += 1
            return EnvelopeChoice.LOAD

        for piece in self._resting.concerning(numbers) if numbers else ():
            if loaded >= most or self._is_stopped or not self.has_room:
                break
            if self._resting.has(piece):
                await self._reading.read(piece, choose, self._now())

    def stop(self) -> None:
        """Read no further; takes that wait end. Nothing is learnt any more."""
        self._is_stopped = True
        self.tell_news()


def _is_in(one: FoundEnvelope, numbers: Collection[int]) -> bool:
    return one.segment in numbers or (one.content is not None and one.content.segment in numbers)
