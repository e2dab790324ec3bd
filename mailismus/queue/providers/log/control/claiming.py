"""Claims: what matches is handed out wherever it is, first of the working set, then piece by piece of what rests.

*Rules*: a piece is read once, and what matches in it is loaded; the rest of it stays where it is. Of one message the pieces
alone are read that may have it, and of these its records alone. What is written behind the beginning of a claim is not
looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import attrs

from mailismus.journal.commit import GroupCommit
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Filter, Gap, Message, Page
from mailismus.queue.pages import CLAIM_MESSAGES, claim_page
from mailismus.queue.providers.log.control.piece_reading import Choose, EnvelopeChoice, PieceReading
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.read.visit import Position

LOOKED_AT = 1000
"""Pieces that are looked at in memory for one page, at most: some milliseconds of the reactor."""

UNREAD = (Gap("segment", "a segment of the log can't be read", 1, ""),)


@attrs.frozen
class ClaimCursor:
    """Where a claim goes on: behind this message in memory, or (`at` is not None) at this position of the log. `newest`:
    number of the newest batch when it began, `newest_id` the highest spool id in memory then."""

    newest: int
    newest_id: SpoolId
    in_memory: SpoolId
    at: Position | None = None


@attrs.define
class _Pages:
    """One page while it is filled."""

    wanted: Filter
    newest: int
    found: dict[SpoolId, Message] = attrs.Factory(dict)
    count: int = 0
    """Entries found."""

    def choose(self, one: FoundEnvelope, _: float) -> EnvelopeChoice:
        """Have an envelope loaded in which an entry matches."""
        message, wanted = one.message, self.wanted
        if one.place.sequence > self.newest or wanted.spool_id not in (None, message.spool_id):
            return EnvelopeChoice.LEAVE
        entries = [entry for entry in one.entries if wanted.area in (None, entry.area) and wanted.matches(message, entry)]
        if not entries:
            return EnvelopeChoice.LEAVE
        self.count += len(entries)
        before = self.found.get(message.spool_id)
        self.found[message.spool_id] = attrs.evolve(message, entries=[*(before.entries if before else ()), *entries])
        return EnvelopeChoice.LOAD

    def meet(self, known: LogMessage) -> None:
        """Look at a message in memory."""
        wanted = self.wanted
        entries = [
            entry
            for entry in known.entries.values()
            if wanted.area in (None, entry.area) and wanted.matches(known.message, entry)
        ]
        if entries:
            self.count += len(entries)
            self.found[known.message.spool_id] = attrs.evolve(known.message, entries=entries)

    def page(self, working_set: WorkingSet, cursor: ClaimCursor | None, gaps: tuple[Gap, ...] = ()) -> Page:
        """Return the page, its entries handed out."""
        return claim_page(Page(tuple(self.found.values()), cursor, gaps), self.wanted, working_set)


class LogClaims:
    """Claims of one queue. `now`: UTC seconds."""

    def __init__(
        self,
        working_set: WorkingSet,
        resting: Resting,
        reading: PieceReading,
        commits: GroupCommit,
        now: Callable[[], float],
    ) -> None:
        self._working_set, self._resting, self._reading, self._commits = working_set, resting, reading, commits
        self._now = now

    async def claim(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """As `IQueue.claim`."""
        cursor = after if isinstance(after, ClaimCursor) else self._begin()
        if cursor.at is None:
            page = self._claim_in_memory(wanted, cursor, limit)
            if page is not None:
                return page
        return await self._claim_resting(wanted, cursor)

    def _begin(self) -> ClaimCursor:
        return ClaimCursor(self._commits.applied_sequence, self._working_set.newest_id(), SpoolId(0))

    def _claim_in_memory(self, wanted: Filter, cursor: ClaimCursor, limit: int) -> Page | None:
        """Return the next page from memory; None: nothing is left there."""
        pages = _Pages(wanted, cursor.newest)
        for looked, known in enumerate(self._in_memory(wanted.spool_id, cursor), 1):
            pages.meet(known)
            if pages.count >= limit or looked >= CLAIM_MESSAGES:
                following = attrs.evolve(cursor, in_memory=known.message.spool_id)
                return pages.page(self._working_set, following)
        return pages.page(self._working_set, attrs.evolve(cursor, at=(0, 0))) if pages.found else None

    def _in_memory(self, spool_id: SpoolId | None, cursor: ClaimCursor) -> Iterator[LogMessage]:
        """Yield the messages in memory behind the cursor, in order; `spool_id`: this one alone."""
        if spool_id is None:
            yield from self._working_set.messages_between(SpoolId(cursor.in_memory + 1), cursor.newest_id)
        elif spool_id > cursor.in_memory and (known := self._working_set.messages.get(spool_id)) is not None:
            yield known

    async def _claim_resting(self, wanted: Filter, cursor: ClaimCursor) -> Page:
        """Return a page of the next piece that may have something."""
        begin = cursor.at or (0, 0)
        pages, gaps, is_read = _Pages(wanted, cursor.newest), False, False
        for looked, piece in enumerate(self._resting.all(*begin)):
            position = (piece.segment, piece.begin)
            if position < begin or (looked < LOOKED_AT and not self._may_match(piece, wanted)):
                continue
            if is_read or looked >= LOOKED_AT:
                return pages.page(self._working_set, attrs.evolve(cursor, at=position), UNREAD if gaps else ())
            gaps = not await self._read(piece, wanted.spool_id, partial(_Pages.choose, pages))
            is_read = True
        return pages.page(self._working_set, None, UNREAD if gaps else ())

    async def _read(self, piece: Piece, spool_id: SpoolId | None, choose: Choose) -> bool:
        """Load what is chosen in a piece. Return whether it could be read."""
        if spool_id is None:
            return await self._reading.read(piece, choose, self._now())
        return await self._reading.pick(piece, (spool_id,), choose, self._now())

    def _may_match(self, piece: Piece, wanted: Filter) -> bool:
        """Whether the piece may have an entry of this area, and of this message."""
        area = wanted.area
        has_area = area is None or not piece.is_known or piece.amounts[area].entries > 0
        return has_area and piece.may_have(wanted.spool_id) and self._resting.has(piece)
