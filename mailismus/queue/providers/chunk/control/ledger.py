"""What settlements make of the entries of a message, and what a batch that has ended makes of the index; who rests.

A message rests (`index.resting`) when it is in S5, none of its entries is out or being settled, and none is due within
`NEAR_S`. New ones rest in S4 while `MOST_WAITING` entries wait in memory.

*Rules*: several settlements of one message in a batch are one change of its files, in the order in which they came; those of
what is gone are ignored. The index says what is durable: it changes when the batch has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.due.index import DueIndex
from mailismus.queue.entering import successor_of
from mailismus.queue.interface import Area, Entry, Settlement
from mailismus.queue.provider import IsLocal
from mailismus.queue.providers.chunk.index.changes import ChangeKind, FileChange, plan_change, preprocess
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.resting import RestingChunks
from mailismus.queue.providers.chunk.index.rows import RestingFacts
from mailismus.queue.providers.chunk.write.batch import FailedChange

NEAR_S = 5.0
"""Entries that are due within this time stay in memory."""
MOST_WAITING = 20_000
"""Entries in memory that are not out, beyond which no more of those come in that are on disk alone."""


@attrs.define(eq=False)
class Part:
    """The settlements of one request for one message."""

    settlements: list[Settlement]
    on_end: Callable[[SpoolId | None], None]
    """Called when they are durable, with the message's id if none of its entries is left."""

    @property
    def only_ends(self) -> bool:
        """Whether all of them end their entries."""
        return all(one.area is None for one in self.settlements)


@attrs.define(eq=False)
class PlannedChange:
    """A change with what it does to the index."""

    change: FileChange
    parts: Sequence[Part]
    successors: Sequence[Entry] = ()
    over: Sequence[int] = ()
    last: int = 0
    """Which part ended an entry last."""


class ChunkLedger:
    """The messages of the queue. `now`: UTC seconds. `forget_content`: a message rests, or is over."""

    def __init__(self, is_local: IsLocal, now: Callable[[], float], forget_content: Callable[[SpoolId], None]) -> None:
        self.index: DueIndex[KnownChunk] = DueIndex()
        self.resting = RestingChunks()
        self.new_numbers: set[int] = set()
        """Numbers of the messages in S4, in memory and at rest. Read only."""
        self._is_local, self._now, self._forget_content = is_local, now, forget_content

    def find(self, queue_id: QueueId) -> KnownChunk | None:
        """The message in memory of an entry that is there."""
        known = self.index.messages.get(queue_id.spool_id)
        return known if known is not None and queue_id.number in known.entries else None

    @property
    def message_count(self) -> int:
        """Messages in memory and at rest."""
        return len(self.index.messages) + len(self.resting)

    def has(self, spool_id: SpoolId) -> bool:
        """Whether the message is there, in memory or at rest."""
        return spool_id in self.index.messages or self.resting.find(spool_id) is not None

    def place_of(self, spool_id: SpoolId) -> tuple[int, int] | None:
        """The number of a message's files, and the bytes of its content as stored; None: it is not there."""
        known = self.index.messages.get(spool_id)
        if known is not None:
            return known.number, known.message.stored_bytes
        row = self.resting.find(spool_id)
        if row is None:
            return None
        facts = self.resting.rows.facts(row)
        return facts.number, facts.stored_bytes

    def add(self, known: KnownChunk) -> bool:
        """A message is committed, and in S4. Return whether it is in memory: it rests at once where many wait."""
        self.new_numbers.add(known.number)
        if self.is_crowded():
            self.resting.add(known.message, known.number, known.entries.values(), is_new=True)
            return False
        self.index.add(known, self._now())
        return True

    def add_found(self, known: KnownChunk) -> None:
        """A message was found at a start that must be in memory: its files are to be written anew."""
        if not known.is_preprocessed:
            self.new_numbers.add(known.number)
        self.index.add(known, self._now())

    def rest_found(self, facts: RestingFacts) -> None:
        """A message was found at a start: it rests."""
        if facts.is_new:
            self.new_numbers.add(facts.number)
        self.resting.add_found(facts)

    def is_crowded(self) -> bool:
        """Whether `MOST_WAITING` entries wait in memory."""
        return not self.index.has_room(MOST_WAITING, self._now())

    # ------------------------------------------------------------------ rest

    def wake(self, row: int, facts: RestingFacts, known: KnownChunk) -> None:
        """A message that rests was read: it is in memory from now on."""
        self.resting.remove(row)
        self.resting.adjust(facts, known)
        self.index.add(known, self._now())

    def _rests(self, known: KnownChunk, after: Collection[Entry]) -> bool:
        """Whether a message may rest that is in its files with these entries."""
        near = self._now() + NEAR_S
        return (
            known.is_preprocessed
            and not (known.is_spoiled or known.is_todo_unsure or known.out)
            and not any(known.settling.values())
            and all(entry.due_at > near for entry in after)
            and not any((known.message.spool_id, entry.number) in self.index.given_back for entry in after)
        )

    def _rest(self, known: KnownChunk, after: Collection[Entry]) -> None:
        for number in list(known.entries):
            self.index.move(known, number)
        self.index.drop_stale()
        self.resting.add(known.message, known.number, after, is_new=False)
        self._forget_content(known.message.spool_id)

    def begin(self, known: KnownChunk, numbers: Sequence[int]) -> None:
        """Settlements of these entries begin: until they end the entries are out."""
        for number in numbers:
            known.settling[number] += 1
            known.go_out((number,))

    def plan(self, known: KnownChunk, parts: Sequence[Part]) -> PlannedChange | None:
        """The change that these settlements make of a message; None: none, all of them are of what is gone."""
        after: dict[int, Entry | None] = dict(known.entries)
        touched: dict[int, None] = {}
        last = 0
        for at, part in enumerate(parts):
            for settlement in part.settlements:
                number = settlement.queue_id.number
                before = after.get(number)
                if before is None:
                    continue
                touched[number] = None
                area = settlement.area
                after[number] = None if area is None else successor_of(before, settlement, area)
                last = at if area is None else last
        if not touched:
            return None
        successors = [entry for number in touched if (entry := after[number]) is not None]
        over = [number for number in touched if after[number] is None]
        return PlannedChange(plan_change(known, successors, over, self._is_local), parts, successors, over, last)

    def plan_preprocessing(self, known: KnownChunk) -> PlannedChange:
        """The change that preprocesses a message as it is."""
        return PlannedChange(preprocess(known, self._is_local), ())

    def apply(self, planned: PlannedChange) -> set[Area]:
        """A change is durable. Return the areas with entries that may be taken."""
        change, known, now = planned.change, planned.change.known, self._now()
        self._note_files(change)
        known.heal()
        changed: set[Area] = set()
        settled = [one.queue_id.number for part in planned.parts for one in part.settlements]
        known.settling.subtract(settled)
        known.come_back(number for number in settled if not known.settling[number])
        after = {number: entry for number, entry in known.entries.items() if number not in planned.over}
        after.update((entry.number, entry) for entry in planned.successors)
        if after and self._rests(known, after.values()):
            self._rest(known, after.values())
            for part in planned.parts:
                part.on_end(None)
            return {entry.area for entry in planned.successors}
        for entry in planned.successors:
            changed.add(entry.area)
            self.index.replace(known, entry, now)
            if known.settling[entry.number]:
                known.go_out((entry.number,))
        is_gone = bool(planned.over) and self.index.end(known, planned.over)
        if is_gone:
            self.new_numbers.discard(known.number)
        for at, part in enumerate(planned.parts):
            part.on_end(known.message.spool_id if is_gone and at == planned.last else None)
        return changed

    def fail(self, failed: FailedChange) -> None:
        """A change does not count: its message's files are written anew by the next one."""
        change, known = failed.change, failed.change.known
        is_found = failed.is_done and change.kind is ChangeKind.PREPROCESS
        if is_found:
            self._note_files(change)
        known.spoil(is_todo_unsure=is_found)

    def _note_files(self, change: FileChange) -> None:
        if change.kind is ChangeKind.END_SOME_NEW:
            change.known.keep_envelope(change.places)
        elif change.kind is not ChangeKind.END_NEW:
            self.new_numbers.discard(change.known.number)
            live_bytes = None if change.kind is ChangeKind.APPEND else dict(change.sizes)
            change.known.keep_files(change.places, change.sizes, live_bytes)
