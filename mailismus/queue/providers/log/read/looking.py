"""Counts and pages of entries: those in memory, then those that rest in the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Entry, Filter, Gap, Message, Page, Summary
from mailismus.queue.providers.log.format.record import LogPlace
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.read.visit import PartVisit
from mailismus.queue.sums import new_sums, summary_of

UNREAD = (Gap("segment", "a segment of the log can't be read", 1, ""),)


@attrs.frozen
class LogCursor:
    """Where a search goes on: behind this entry in memory, or (`resting` is not None) with the messages `rest`, then behind
    this entry of the log, from the piece at `at` on (its segment and offset; None: there was none). `newest`: number of the
    newest batch when the search began: what is written later was seen."""

    newest: int
    in_memory: QueueId
    resting: tuple[LogPlace, int] | None = None
    at: tuple[int, int] | None = None
    rest: tuple[Message, ...] = ()


class Looking:
    """Counts and searches of one queue. `visit`: has every resting envelope looked at."""

    def __init__(self, working_set: WorkingSet, visit: PartVisit) -> None:
        self._working_set, self._visit = working_set, visit

    async def summarize(self, refusing: str) -> Summary:
        """Return the counts of all entries. `refusing`: as in `Summary`."""
        sums = new_sums()

        def look(one: FoundEnvelope, piece: Piece) -> None:
            for entry in one.entries:
                sums[entry.area].add_entry(one.message)

        for known in self._working_set.messages.values():
            for entry in known.entries.values():
                sums[entry.area].add_entry(known.message)
        is_whole = await self._visit(look)
        return summary_of(sums, () if is_whole else UNREAD, refusing)

    async def search(self, wanted: Filter, after: object | None, limit: int, newest: int) -> Page:
        """As `IQueue.search`. `newest`: sequence number of the newest batch."""
        cursor = after if isinstance(after, LogCursor) else LogCursor(newest, QueueId(SpoolId(0), 0))
        found: list[Message] = []
        if cursor.resting is None:
            last = cursor.in_memory
            for known in self._candidates(wanted, last.spool_id):
                entries = _matching(known, wanted, last)[:limit]
                if entries:
                    found += _by_envelope(known, entries)
                    limit -= len(entries)
                    if not limit:
                        at = QueueId(known.message.spool_id, entries[-1].number)
                        return Page(tuple(found), LogCursor(cursor.newest, at))
        return await self._search_resting(wanted, cursor, limit, found)

    async def _search_resting(self, wanted: Filter, cursor: LogCursor, limit: int, found: list[Message]) -> Page:
        """Go on in the log. What is found in the last piece beyond `limit` goes with the cursor: no piece is read for each
        page that it fills."""
        if cursor.rest:
            page, rest = _split([*found, *cursor.rest], limit + _count(found))
            return Page(tuple(page), attrs.evolve(cursor, rest=tuple(rest)) if rest or cursor.at else None)
        behind = cursor.resting or (LogPlace(0, 0), 0)
        last, left = behind, limit
        present: Piece | None = None
        ended_at: tuple[int, int] | None = None

        def ends_at(piece: Piece) -> bool:
            nonlocal present, ended_at
            present = piece
            ended_at = (piece.segment, piece.begin) if left <= 0 else None
            return left <= 0

        def look(one: FoundEnvelope, piece: Piece) -> None:
            nonlocal left, last
            message = one.message
            if one.place.sequence > cursor.newest or (wanted.spool_id or message.spool_id) != message.spool_id:
                return
            entries = [entry for entry in entries_in(one, wanted) if (one.place, entry.number) > behind]
            if entries:
                left -= len(entries)
                if piece is present:  # else it is loaded from a piece to come, and not found there again
                    last = one.place, entries[-1].number
                found.append(attrs.evolve(message, entries=entries))

        begin = cursor.at or (0, 0)
        before = _count(found)
        is_whole = await self._visit(look, begin=begin, ends_at=ends_at)
        page, rest = _split(found, before + limit)
        following = LogCursor(cursor.newest, cursor.in_memory, last, ended_at, tuple(rest))
        return Page(tuple(page), following if rest or ended_at else None, () if is_whole else UNREAD)

    def _candidates(self, wanted: Filter, first: SpoolId) -> Iterator[LogMessage]:
        if wanted.spool_id is None:
            yield from self._working_set.messages_from(first)
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


def entries_in(one: FoundEnvelope, wanted: Filter) -> list[Entry]:
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


def _count(messages: Sequence[Message]) -> int:
    return sum(len(message.entries) for message in messages)


def _split(messages: Sequence[Message], count: int) -> tuple[list[Message], list[Message]]:
    """The messages with the first `count` entries, and those with the others."""
    first: list[Message] = []
    for at, message in enumerate(messages):
        if len(message.entries) > count:
            rest = [attrs.evolve(message, entries=message.entries[count:]), *messages[at + 1 :]]
            return [*first, *([attrs.evolve(message, entries=message.entries[:count])] if count else [])], rest
        first.append(message)
        count -= len(message.entries)
    return first, []


def _number(entry: Entry) -> int:
    return entry.number
