"""Flushing: matching deferred entries are due now, those that rest too.

    everything      -> each known piece is due, and told by its amounts; nothing is read
    some entries    -> each slice of the log is looked at; a piece in which one matches is due at once

*Rules*: deliveries do not wait for the end of a flush. An entry is told once, whatever becomes of it meanwhile. What is
deferred behind the begin of a flush waits for its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.journal.commit import GroupCommit
from mailismus.queue.interface import Area, Entry, Filter, Flushed, Message
from mailismus.queue.providers.log.control.visits import Visits
from mailismus.queue.providers.log.control.waiters import LogWaiters
from mailismus.queue.providers.log.index.piece import Piece, area_of, runner_of
from mailismus.queue.providers.log.index.rest_counts import RestCounts
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.working_set import WorkingSet
from mailismus.queue.providers.log.read.envelopes import SeenEnvelope
from mailismus.queue.providers.log.read.looking import UNREAD
from mailismus.queue.providers.log.read.visit import Position


class Flushing:
    """Flushes of one queue."""

    def __init__(
        self, working_set: WorkingSet, resting: Resting, visits: Visits, waiters: LogWaiters, commits: GroupCommit
    ) -> None:
        self._working_set, self._resting, self._visits = working_set, resting, visits
        self._waiters, self._commits = waiters, commits

    async def flush(self, wanted: Filter, now: float) -> Flushed:
        """As `IQueue.visit_all`."""
        newest, count = self._commits.applied_sequence, self._flush_loaded(wanted, now)
        told = RestCounts(self._resting, _is_known if wanted.is_everything else _is_never_told)
        if wanted.is_everything:
            count += sum(segment.amounts[Area.DEFERRED].entries for segment in told.segments())
            for piece in self._resting.all():
                if piece.is_known:
                    self._flush_piece(piece, wanted, newest, [one for one in piece.dues if area_of(one) is Area.DEFERRED])
        if count:
            self._waiters.fire((Area.DEFERRED,))
        if told.is_all:
            return Flushed(count)
        more, is_whole = await self._flush_visited(wanted, newest, told)
        return Flushed(count + more, () if is_whole else UNREAD)

    def _flush_loaded(self, wanted: Filter, now: float) -> int:
        """Make what matches in memory due. Return how many entries."""
        count = 0
        for known in list(self._working_set.messages.values()):
            for number, entry in known.entries.items():
                if number not in known.out and _is_flushed(wanted, known.message, entry):
                    count += 1
                    self._working_set.make_due(known, entry, now)
        return count

    def _flush_piece(self, piece: Piece, wanted: Filter, newest: int, runners: Sequence[int]) -> None:
        """What matches in a piece, of these runners, is due."""
        if runners and self._resting.has(piece):
            self._resting.flush(piece, wanted, newest, runners)

    async def _flush_visited(self, wanted: Filter, newest: int, told: RestCounts) -> tuple[int, bool]:
        """Have everything looked at that is not told. Return how many entries match, and whether all could be read."""
        count = fired = 0

        def look(one: SeenEnvelope, piece: Piece) -> None:
            nonlocal count
            if one.place.sequence > newest or told.covers(one.segment, one.batch):
                return
            matching = sum(_is_flushed(wanted, one.message, entry) for entry in one.entries)
            if matching:
                count += matching
                self._flush_piece(piece, wanted, newest, (runner_of(Area.DEFERRED, one.interval),))

        def fire(_: Position = (0, 0)) -> bool:
            nonlocal fired
            if count > fired:
                fired = count
                self._waiters.fire((Area.DEFERRED,))
            return False

        is_whole = await self._visits.visit(look, ends_at=fire, is_left_out=told.covers, only=wanted.spool_id)
        fire()
        return count, is_whole


def _is_flushed(wanted: Filter, message: Message, entry: Entry) -> bool:
    return (
        entry.area is Area.DEFERRED
        and wanted.area in (None, Area.DEFERRED)
        and wanted.spool_id in (None, message.spool_id)
        and wanted.matches(message, entry)
    )


def _is_known(piece: Piece) -> bool:
    return piece.is_known


def _is_never_told(piece: Piece) -> bool:
    return False
