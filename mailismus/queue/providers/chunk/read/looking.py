"""Search, counts and flushes, over what is in memory and what rests.

*Rules*: a message is looked at once, in the order of spool ids, in memory or in its files, wherever it is by then. What
can't be read is told as a gap. What rests is read in a worker, `SLICE` messages at a time: a search disturbs nobody.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from functools import partial
from heapq import merge

import attrs

from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Area, AreaCount, Entry, Filter, Flushed, Gap, Message, Page, Summary
from mailismus.queue.providers.chunk.format.version import MESS
from mailismus.queue.providers.chunk.index.adjustments import is_flushed
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.resting import RestingChunks
from mailismus.queue.providers.chunk.index.rows import RestingFacts
from mailismus.queue.providers.chunk.read.messages import read_messages
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.sums import new_sums

LOOKED_AT = 5000
"""Messages that one page looks at, at most."""
SLICE = 100
SORTED = 20_000
"""Numbers that are sorted at a time."""


@attrs.frozen
class _Cursor:
    """Where a search goes on: the spool ids of all messages at its beginning, from this position on. `behind`: the number of
    the last recipient of the first of them that was given out."""

    spool_ids: Sequence[int]
    at: int
    behind: int


class ChunkLooking:
    """Looks at one queue. `worker` reads."""

    def __init__(
        self, index: DueIndex[KnownChunk], resting: RestingChunks, directories: ChunkDirectories, worker: IWorker
    ) -> None:
        self._index, self._resting, self._queue, self._worker = index, resting, directories, worker
        self._reading = 0

    @property
    def is_idle(self) -> bool:
        """Whether no file is being read."""
        return not self._reading

    def summarize(self, gaps: tuple[Gap, ...], refusing: str) -> Summary:
        """Counts of all entries. Reads no file."""
        sums = new_sums()
        for known in self._index.messages.values():
            for entry in known.entries.values():
                sums[entry.area].add_entry(known.message)
        areas = {area: _total(sums[area].count(), self._resting.count_in(area)) for area in Area}
        return Summary(areas, not gaps, gaps, refusing)

    async def search(
        self,
        wanted: Filter,
        after: object | None,
        limit: int,
        gaps: tuple[Gap, ...],
        most: int,
        read: dict[SpoolId, KnownChunk] | None = None,
    ) -> Page:
        """As `IQueue.search`. `gaps`: those that are known before, told with the first page. `most`: messages that are
        looked at, at most. `read`: gets those of the page that were read from their files, whole."""
        if isinstance(after, _Cursor):
            cursor, gaps = after, ()
        else:
            cursor = _Cursor(await self._spool_ids(wanted), 0, 0)
        spool_ids, at, behind = cursor.spool_ids, cursor.at, cursor.behind
        found: list[Message] = []
        missing: list[RestingFacts] = []
        until = min(len(spool_ids), at + most)
        while at < until and limit > 0:
            some = spool_ids[at : min(until, at + SLICE)]
            for known in await self._look(some, wanted, missing):
                entries = [] if known is None else _matching(known, wanted, behind)
                if known is not None and entries:
                    found.append(attrs.evolve(known.message, entries=entries[:limit]))
                    if read is not None and self._index.messages.get(known.message.spool_id) is not known:
                        read[known.message.spool_id] = known
                if len(entries) > limit:
                    behind = entries[limit - 1].number
                    limit = 0
                    break
                at, behind, limit = at + 1, 0, limit - len(entries)
                if not limit:
                    break
        return Page(
            tuple(found), _Cursor(spool_ids, at, behind) if at < len(spool_ids) else None, gaps + self._gaps(missing)
        )

    async def flush(self, wanted: Filter, now: float, gaps: tuple[Gap, ...]) -> tuple[Flushed, bool]:
        """As `IQueue.visit_all`. `gaps`: those that are known before. Return whether something is due by it, too."""
        generation = self._resting.adjustments.next
        self._resting.adjustments.add_flush(wanted, now)
        count = sum(self._flush_in_memory(known, wanted, now) for known in list(self._index.messages.values()))
        resting = await self._resting_ids(wanted)
        missing: list[RestingFacts] = []
        for first in range(0, len(resting), SLICE):
            rows = [
                row
                for spool_id in resting[first : first + SLICE]
                if (row := self._resting.find(SpoolId(spool_id))) is not None
                and self._resting.rows.has_area(row, Area.DEFERRED)
                and self._resting.rows.facts(row).generation <= generation
            ]
            for facts, known in await self._read(rows):
                row_now = self._resting.find(facts.spool_id)
                if known is None:
                    missing.extend(() if row_now is None else (facts,))
                    continue
                matching = sum(is_flushed(wanted, known.message, entry) for entry in known.entries.values())
                if not matching:
                    continue
                if row_now is None:
                    in_memory_now = self._index.messages.get(facts.spool_id)
                    count += 0 if in_memory_now is None else self._flush_in_memory(in_memory_now, wanted, now)
                    continue
                count += matching
                if facts.due_at > now and not self._resting.rows.is_loading(row_now):
                    self._resting.make_due(row_now, now)
        return Flushed(count, gaps + self._gaps(missing)), bool(count)

    def _flush_in_memory(self, known: KnownChunk, wanted: Filter, now: float) -> int:
        count = 0
        for number, entry in known.entries.items():
            if number not in known.out and is_flushed(wanted, known.message, entry):
                count += 1
                self._index.make_due(known, entry, now)
        return count

    # ------------------------------------------------------------------ what is looked at

    async def _spool_ids(self, wanted: Filter) -> Sequence[int]:
        """The spool ids of all messages, in order."""
        if wanted.spool_id is not None:
            return array("Q", (wanted.spool_id,))
        resting, in_memory = self._resting.rows.copy_ids(), array("Q", self._index.messages)
        if not resting:
            return array("Q", sorted(in_memory))
        return await self._worker.run(partial(_sorted_ids, resting + in_memory))

    async def _resting_ids(self, wanted: Filter) -> Sequence[int]:
        if wanted.spool_id is not None:
            return array("Q", (wanted.spool_id,))
        resting = self._resting.rows.copy_ids()
        return await self._worker.run(partial(_sorted_ids, resting)) if resting else resting

    async def _look(self, spool_ids: Sequence[int], wanted: Filter, missing: list[RestingFacts]) -> list[KnownChunk | None]:
        """The messages in their order; None: one that is gone, has no entry of the area, or can't be read (`missing`)."""
        rows = [
            row
            for spool_id in spool_ids
            if (row := self._resting.find(SpoolId(spool_id))) is not None
            and (wanted.area is None or self._resting.rows.has_area(row, wanted.area))
        ]
        read: dict[int, tuple[RestingFacts, KnownChunk | None]] = {}
        if rows:
            read = {facts.spool_id: (facts, known) for facts, known in await self._read(rows)}
        found: list[KnownChunk | None] = []
        for one in spool_ids:
            spool_id = SpoolId(one)
            known = self._index.messages.get(spool_id)
            if known is None and self._resting.find(spool_id) is not None and spool_id in read:
                facts, known = read[spool_id]
                if known is None:
                    missing.append(facts)
                else:
                    self._resting.adjust(facts, known)
            found.append(known)
        return found

    async def _read(self, rows: Sequence[int]) -> Sequence[tuple[RestingFacts, KnownChunk | None]]:
        wanted = [self._resting.rows.facts(row) for row in rows]
        if not wanted:
            return ()
        self._reading += 1
        try:
            read = await self._worker.run(partial(read_messages, self._queue, wanted, notes=False))
        finally:
            self._reading -= 1
        return list(zip(wanted, read, strict=True))

    def _gaps(self, missing: Collection[RestingFacts]) -> tuple[Gap, ...]:
        if not missing:
            return ()
        first = next(iter(missing))
        path = self._queue.path_of(MESS, first.number)
        return (Gap("message", "its files can't be read, or do not check", len(missing), path),)


def _matching(known: KnownChunk, wanted: Filter, behind: int) -> list[Entry]:
    """The entries of a message that match, beyond a number."""
    if wanted.spool_id not in (None, known.message.spool_id):
        return []
    return [
        entry
        for number, entry in sorted(known.entries.items())
        if number > behind and wanted.area in (None, entry.area) and wanted.matches(known.message, entry)
    ]


def _total(one: AreaCount, other: AreaCount) -> AreaCount:
    return AreaCount(one.entries + other.entries, one.messages + other.messages, one.stored_bytes + other.stored_bytes)


def _sorted_ids(spool_ids: array[int]) -> array[int]:
    """In order, without those that stand for none. Piece by piece: a list of a million numbers takes 40 MB, and to sort it
    holds all threads up for a seventh of a second."""
    pieces = [array("Q", sorted(spool_ids[at : at + SORTED])) for at in range(0, len(spool_ids), SORTED)]
    found = array("Q", merge(*pieces))
    return found[found.count(0) :]
