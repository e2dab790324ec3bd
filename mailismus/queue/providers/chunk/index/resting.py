"""Resting messages: those that wait in their files alone, known by packed rows (pure).

    rests -> due -> loading -> in memory with all of its entries, and no row any more
                 \\-> held: its sender was passed over; released when that one has room again

At most 64 bytes a message: 56 in its row and in the hash table (`rows`), about 5 in the buckets (`due_buckets`); 8 more in
the front of these, which is the minute that has come. A message in two areas is in the buckets of both.

*Rules*: a message is in memory, or rests, never both. Its due time is that of its first entry: never too late.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, AreaCount, Entry, Latest, Message
from mailismus.queue.providers.chunk.index.adjustments import Adjustments
from mailismus.queue.providers.chunk.index.due_buckets import DueBuckets
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.rows import RestingFacts, RestingRows, hash_of, summed

RELEASED = 100
"""Messages of a sender that are released together: more are loaded when these have gone."""
_SPARE_ITEMS = 1024
"""Items of gone rows that are no reason to build the buckets anew."""


class RestingChunks:
    """All resting messages of one queue."""

    def __init__(self) -> None:
        self.adjustments = Adjustments()
        self.rows = RestingRows()
        self._buckets = {area: DueBuckets(self.rows) for area in Area}
        self._held: dict[Area, dict[int, array[int]]] = {area: {} for area in Area}
        """By the hash of the sender."""
        self._counts = {area: [0, 0, 0] for area in Area}
        """As in `AreaCount`."""
        self._limits: list[Latest] = []
        """Of this run, for messages that a start finds later."""
        self._watches: list[list[SpoolId]] = []
        """Of each `watch` under way: messages that have ceased to rest."""

    def __len__(self) -> int:
        return len(self.rows)

    def count_in(self, area: Area) -> AreaCount:
        """Counts of one area."""
        return AreaCount(*self._counts[area])

    # ------------------------------------------------------------------ come and go

    def add(self, message: Message, number: int, entries: Iterable[Entry], *, is_new: bool) -> None:
        """A message rests from now on: its entries are in its files as they are here."""
        entries = list(entries)
        self.add_facts(facts_of(message, number, entries, self.adjustments.next, is_new=is_new))

    def add_found(self, facts: RestingFacts) -> None:
        """The same for a message that a start finds: its times were written down before this run."""
        for latest in self._limits:
            facts = facts._replace(due_at=_until(latest, facts.counts, facts.due_at, facts.due_at + facts.spread_s))
        self.add_facts(facts)

    def add_facts(self, facts: RestingFacts) -> None:
        """Add a message by its facts."""
        row = self.rows.add(facts)
        self._count(facts, 1)
        self._put(row, facts.counts)

    def remove(self, row: int) -> None:
        """A message does not rest any more."""
        facts = self.rows.facts(row)
        self.rows.remove(row)
        self._count(facts, -1)
        for left in self._watches:
            left.append(facts.spool_id)

    @contextmanager
    def watch(self) -> Iterator[list[SpoolId]]:
        """Note the messages that cease to rest meanwhile, also where they rest again: what was read of all others at any
        time since is what their files say."""
        left: list[SpoolId] = []
        self._watches.append(left)
        try:
            yield left
        finally:
            self._watches = [one for one in self._watches if one is not left]

    def _count(self, facts: RestingFacts, sign: int) -> None:
        for area, count in facts.counts.items():
            counts = self._counts[area]
            counts[0] += sign * count
            counts[1] += sign
            counts[2] += sign * facts.stored_bytes

    def _put(self, row: int, areas: Iterable[Area]) -> None:
        for area in areas:
            buckets = self._buckets[area]
            buckets.put(row)
            if buckets.item_count > 2 * len(self.rows) + _SPARE_ITEMS:
                self._held[area].clear()
                buckets.rebuild(row for row in self.rows.all() if self.rows.has_area(row, area))

    # ------------------------------------------------------------------ due

    def next_due(self, area: Area) -> float | None:
        """When the next message of this area is due, or a little earlier; None: none waits. Those that are held are not
        asked about."""
        return self._buckets[area].next_due()

    def is_due(self, area: Area, now: float) -> bool:
        """Whether a message of this area is due, and not held."""
        return self._buckets[area].is_due(now)

    def begin_loading(self, area: Area, most: int, now: float, passed_over: Collection[bytes]) -> list[int]:
        """Take out messages of this area that are due, those that have waited longest first: at most so many rows, which
        are loading from now on. Messages of senders that were passed over are held."""
        found: list[int] = []
        rows, buckets = self.rows, self._buckets[area]
        hashes = frozenset(map(hash_of, passed_over))
        while len(found) < most and (row := buckets.pop(now)) is not None:
            if not rows.has_area(row, area):
                continue
            sender = rows.sender_hash(row)
            if sender in hashes:
                self._held[area].setdefault(sender, array("I")).append(row)
                continue
            rows.mark_loading(row, is_loading=True)
            found.append(row)
        return found

    def begin_loading_one(self, row: int) -> None:
        """A message is loaded that somebody asked for."""
        self.rows.mark_loading(row, is_loading=True)

    def abandon_loading(self, row: int, due_at: float) -> None:
        """A message could not be read: it is due again at this time."""
        self.rows.mark_loading(row, is_loading=False)
        self.make_due(row, due_at)

    def release(self, passed_over: dict[Area, Collection[bytes]]) -> set[Area]:
        """Let some messages go on of each held sender that has nothing left in the lines of those passed over. Return their
        areas."""
        released: set[Area] = set()
        for area, held in self._held.items():
            hashes = frozenset(map(hash_of, passed_over[area])) if held else frozenset()
            for sender in [sender for sender in held if sender not in hashes]:
                rows = held[sender]
                some = rows[:RELEASED]
                del rows[:RELEASED]
                if not rows:
                    del held[sender]
                released.add(area)
                for row in some:
                    if self.rows.is_used(row) and self.rows.sender_hash(row) == sender and not self.rows.is_loading(row):
                        self._buckets[area].put(row)
        return released

    def release_all(self, area: Area) -> None:
        """Nobody is passed over in this area any more."""
        while self._held[area]:
            self.release(dict.fromkeys(Area, ()))

    # ------------------------------------------------------------------ times that change

    def make_due(self, row: int, due_at: float) -> None:
        """A message is due at another time."""
        self.rows.set_due(row, due_at)
        self._put(row, self.rows.facts(row).counts)

    def hasten(self, latest: Latest) -> set[Area]:
        """As `IQueue.hasten`. Return the areas in which something is due earlier. A step for each message."""
        self.adjustments.add_limit(latest)
        self._limits = [*self._limits[-7:], latest]
        touched: set[Area] = set()
        for row in self.rows.all():
            due_at, last_due = self.rows.due_at[row], self.rows.last_due(row)
            areas = [area for area in Area if self.rows.has_area(row, area)]
            until = _until(latest, areas, due_at, last_due)
            if until < due_at:
                touched.update(areas)
                if self.rows.is_loading(row):
                    self.rows.set_due(row, until)
                else:
                    self.make_due(row, until)
        return touched

    def adjust(self, facts: RestingFacts, known: KnownChunk) -> None:
        """Give the entries of a message that was read the times that they would have in memory."""
        entries, message = known.entries, known.message
        dues = {number: self.adjustments.due_at(message, entry, facts.generation) for number, entry in entries.items()}
        first = min(dues.values())
        for number, due_at in dues.items():
            # Where even the first is due later than the row says, what made it so was forgotten.
            until = min(due_at, facts.due_at) if due_at == first else due_at
            if until != entries[number].due_at:
                entries[number] = attrs.evolve(entries[number], due_at=until)

    def find(self, spool_id: SpoolId) -> int | None:
        """The row of a message; None: it does not rest."""
        return self.rows.find(spool_id)


def _until(latest: Latest, areas: Iterable[Area], due_at: float, last_due: float) -> float:
    """Until when a message may rest whose entries are due between these times. Which of them are changed is known when they
    are read."""
    until = due_at
    for area in areas:
        until = min(until, latest(area, None, due_at))
        if last_due > due_at and (found := latest(area, None, last_due)) < last_due:
            until = min(until, found)
    return until


def facts_of(message: Message, number: int, entries: Collection[Entry], generation: int, *, is_new: bool) -> RestingFacts:
    """What a row keeps of a message. `entries`: all that are left of it, at least one."""
    first, spread_s, counts = summed([(entry.area, entry.due_at) for entry in entries])
    return RestingFacts(
        message.spool_id,
        number,
        first,
        spread_s,
        counts,
        message.stored_bytes,
        hash_of(message.sender),
        generation,
        is_new,
    )
