"""Counts and pages of entries: those in memory, then those that rest in the log."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Filter, Gap, Message, Page, Summary
from mailismus.queue.pages import count_entries, split_page
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.rest_counts import RestCounts
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.search_holds import SearchHolds
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet
from mailismus.queue.providers.log.read.envelopes import SeenEnvelope
from mailismus.queue.providers.log.read.visit import PartVisit, Position
from mailismus.queue.sums import AreaSums, new_sums, summary_of
from mailismus.queue.throttle import WorkThrottle

PAGE_SLICES = 20
"""Slices that are read for one page at most: one in which little matches comes all the same, and a client that has left is
noticed."""

UNREAD = (Gap("segment", "a segment of the log can't be read", 1, ""),)


@attrs.frozen
class LogCursor:
    """Where a search goes on: behind this entry in memory, or (`at` is not None) with the messages `rest`, then at this
    position of the log. `newest`: number of the newest batch when the search began, `newest_id` the highest spool id in
    memory then: what came later is not looked for, or the search would run after new mail. `is_over`: of the log nothing
    is left."""

    newest: int
    newest_id: SpoolId
    last_segment: int
    """The last one in which something rested then."""
    search: object
    """Which search it is (`SearchHolds`)."""
    in_memory: QueueId
    at: Position | None = None
    rest: tuple[Message, ...] = ()
    is_over: bool = False


class Looking:
    """Counts and searches of one queue. `visit`: has every resting envelope looked at."""

    def __init__(
        self, working_set: WorkingSet, resting: Resting, holds: SearchHolds, visit: PartVisit, throttle: WorkThrottle
    ) -> None:
        self._working_set, self._resting, self._holds = working_set, resting, holds
        self._visit, self._throttle = visit, throttle

    def in_memory(self) -> dict[Area, AreaSums]:
        """Return the sums of the entries in memory."""
        sums = new_sums()
        for known in self._working_set.messages.values():
            for entry in known.entries.values():
                sums[entry.area].add_entry(known.message)
        return sums

    async def summarize(self, refusing: str) -> Summary:
        """Return the counts of all entries. `refusing`: as in `Summary`."""
        sums, counted, last_segment = self.in_memory(), RestCounts(self._resting), self._resting.last_segment()
        count = object()

        def hold(position: Position) -> bool:
            self._holds.hold(count, position[0], last_segment)
            return False

        for segment in counted.segments():
            segment.add_to(sums)
        hold((0, 0))

        def look(one: SeenEnvelope, piece: Piece) -> None:
            if not counted.covers(one.segment, one.batch):
                for entry in one.entries:
                    sums[entry.area].add_entry(one.message)

        try:
            is_whole = await self._visit(look, ends_at=hold, is_left_out=counted.covers)
        finally:
            self._holds.end(count)
        return summary_of(sums, () if is_whole else UNREAD, refusing)

    async def search(self, wanted: Filter, after: object | None, limit: int, newest: int) -> Page:
        """As `IQueue.search`. `newest`: sequence number of the newest batch."""
        cursor = after if isinstance(after, LogCursor) else self._begin(newest)
        self._hold(cursor)
        page = await self._search(wanted, cursor, limit)
        if isinstance(page.cursor, LogCursor):
            self._hold(page.cursor)
        else:
            self._holds.end(cursor.search)
        return page

    def _hold(self, cursor: LogCursor) -> None:
        self._holds.hold(cursor.search, cursor.at[0] if cursor.at else 0, cursor.last_segment)

    async def _search(self, wanted: Filter, cursor: LogCursor, limit: int) -> Page:
        found: list[Message] = []
        if cursor.at is None:
            last, used_s = self._throttle.metered(lambda: self._search_memory(wanted, cursor, limit, found))()
            if last is not None:
                await self._throttle.rest(used_s)
                return Page(tuple(found), attrs.evolve(cursor, in_memory=last))
        return await self._search_resting(wanted, cursor, limit, [*found, *cursor.rest])

    def _search_memory(self, wanted: Filter, cursor: LogCursor, limit: int, found: list[Message]) -> QueueId | None:
        """Find at most `limit` entries behind the cursor; return the last one, None: these are all."""
        last = cursor.in_memory
        for known in self._candidates(wanted, last.spool_id, cursor.newest_id):
            entries = _matching(known, wanted, last)[:limit]
            if entries:
                found += _by_envelope(known, entries)
                limit -= len(entries)
                if not limit:
                    return QueueId(known.message.spool_id, entries[-1].number)
        return None

    def _begin(self, newest: int) -> LogCursor:
        return LogCursor(
            newest, self._working_set.newest_id(), self._resting.last_segment(), object(), QueueId(SpoolId(0), 0)
        )

    async def _search_resting(self, wanted: Filter, cursor: LogCursor, limit: int, found: list[Message]) -> Page:
        """Go on in the log behind what is found already. What is found beyond `limit` goes with the cursor: no slice is read
        for each page that it fills."""
        left, begin = limit - count_entries(found), cursor.at or (0, 0)
        is_whole, is_over = True, cursor.is_over
        ended_at: Position | None = None

        slices = 0

        def ends_at(position: Position) -> bool:
            nonlocal ended_at, slices
            slices += 1
            is_enough = left <= 0 or slices > PAGE_SLICES
            ended_at = position if is_enough else None
            return is_enough

        def look(one: SeenEnvelope, piece: Piece) -> None:
            nonlocal left
            message = one.message
            if one.place.sequence > cursor.newest or (wanted.spool_id or message.spool_id) != message.spool_id:
                return
            entries = entries_in(one, wanted)
            if entries:
                left -= len(entries)
                found.append(attrs.evolve(message, entries=entries))

        if left > 0 and not is_over:
            is_whole = await self._visit(look, begin=begin, ends_at=ends_at, only=wanted.spool_id)
            is_over = ended_at is None
        page, rest = split_page(found, limit)
        following = attrs.evolve(cursor, at=ended_at or begin, rest=tuple(rest), is_over=is_over)
        return Page(tuple(page), None if is_over and not rest else following, () if is_whole else UNREAD)

    def _candidates(self, wanted: Filter, first: SpoolId, last: SpoolId) -> Iterator[LogMessage]:
        if wanted.spool_id is None:
            yield from self._working_set.messages_between(first, last)
        elif wanted.spool_id >= first and (known := self._working_set.messages.get(wanted.spool_id)) is not None:
            yield known


def _matching(known: LogMessage, wanted: Filter, last: QueueId) -> list[Entry]:
    spool_id = known.message.spool_id
    return [
        entry
        for number, entry in sorted(known.entries.items())
        if (spool_id, number) > last
        and (wanted.area is None or entry.area is wanted.area)
        and wanted.matches(known.message, entry)
    ]


def entries_in(one: SeenEnvelope, wanted: Filter) -> list[Entry]:
    """The matching entries of an envelope, by number."""
    return [
        entry
        for entry in sorted(one.entries, key=_number)
        if (wanted.area is None or entry.area is wanted.area) and wanted.matches(one.message, entry)
    ]


def _by_envelope(known: LogMessage, entries: list[Entry]) -> Iterator[Message]:
    """The message with these entries, once for each envelope: as it is found in the log by those who read that alone."""
    by_number = {entry.number: entry for entry in entries}
    for _, numbers in known.by_envelope(list(by_number)):
        yield attrs.evolve(known.message, entries=[by_number[number] for number in numbers])


def _number(entry: Entry) -> int:
    return entry.number
