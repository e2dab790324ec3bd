"""Index in memory of entries that are due, wait for their time, or are out (pure).

    taken -> settled: moved, replaced or ended
          -> given back: waits again; hastened: waits for less

The index knows no file, no clock and no Deferred. Its changes are durable before, if the provider's are at all: the caller
of `add`, `put` and `end` waits for that first.

*Not here*: how entries are taken (`entries`).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.due.entries import DueEntries, M
from mailismus.queue.interface import Area, Entry, Latest

SPARE_TIMES = 1000
"""Times of entries that are gone that are no reason to look through all."""
COUNTED_S = 0.2
"""Seconds for which the number of entries that are out is good enough: it is counted message by message."""


class DueIndex(DueEntries[M]):
    """The same, with what changes the times of entries, and what is asked about them."""

    def __init__(self) -> None:
        super().__init__()
        self._counted_at, self._counted_out = -1.0, 0

    def has_room(self, most: int, now: float) -> bool:
        """Whether fewer than `most` entries wait. Those that are out do not count: the caller of `take` bounds them."""
        if self.entry_count < most:
            return True
        if not 0 <= now - self._counted_at < COUNTED_S:
            self._counted_at = now
            self._counted_out = sum(len(known.out) for known in self.messages.values())
        return self.entry_count - self._counted_out < most

    def give_back(self, queue_ids: Iterable[QueueId], not_before: float) -> set[Area]:
        """As `IQueue.give_back`. Return the areas of the entries."""
        touched = set()
        for spool_id, number in queue_ids:
            known = self.messages.get(spool_id)
            if known is None:
                continue
            if number in known.out:
                known.come_back((number,))
                entry = known.entries[number]
                until = max(not_before, entry.due_at)  # it was due, but the clock may have been set back since
                self._areas[entry.area].wait(spool_id, number, until)
                self.given_back[QueueId(spool_id, number)] = until
                touched.add(entry.area)
        return touched

    def replace(self, known: M, successor: Entry, now: float) -> None:
        """Replace the entry of the same number, if there is one."""
        number = successor.number
        known.come_back((number,))
        self.given_back.pop(QueueId(known.message.spool_id, number), None)
        if number in known.entries:
            self.put(known, successor, now)

    def move(self, known: M, number: int) -> None:
        """Remove an entry that moved to another index; its message goes with its last one."""
        moved = known.entries.pop(number, None)
        if moved is not None:
            self.entry_count -= 1
            self._areas[moved.area].entry_count -= 1
        known.come_back((number,))
        self.given_back.pop(QueueId(known.message.spool_id, number), None)
        if not known.entries:
            self._forget(known)

    def drop_stale(self) -> None:
        """Forget the times of entries that are gone or out, once these are more than the others: for an index from which
        messages move while they wait."""
        if sum(len(area.waiting) for area in self._each_area) <= 2 * self.entry_count + SPARE_TIMES:
            return
        for wanted, area in self._areas.items():
            area.waiting = [one for one in area.waiting if self._is_waiting(wanted, *one)]
            heapq.heapify(area.waiting)

    def _is_waiting(self, wanted: Area, due_at: float, spool_id: SpoolId, number: int) -> bool:
        """Whether an entry of this area waits until this time, or an earlier one."""
        known = self.messages.get(spool_id)
        if known is None or number in known.out:
            return False
        entry = known.entries.get(number)
        return entry is not None and entry.area is wanted and entry.due_at <= due_at

    def count_in(self, wanted: Area) -> int:
        """Return the number of entries of this area, out or not."""
        return self._areas[wanted].entry_count

    def oldest_since(self) -> float | None:
        """Return about when the oldest message of the index was added; None: the index is empty."""
        oldest = next(iter(self.messages.values()), None)
        return oldest.since if oldest is not None else None

    def room_again(self) -> set[Area]:
        """As `IQueue.room_again`. Return the areas with entries of senders that are asked about again."""
        return {wanted for wanted, area in self._areas.items() if area.passed_over.wake()}

    def is_passed_over(self, wanted: Area, sender: bytes) -> bool:
        """Whether messages of this sender wait in a line until it may be asked about again."""
        return sender in self._areas[wanted].passed_over.lines

    def passed_over(self, wanted: Area) -> Collection[bytes]:
        """The senders of this area whose messages wait in a line until they may be asked about again."""
        return self._areas[wanted].passed_over.lines.keys()

    def has_ready(self, wanted: Area) -> bool:
        """Whether entries of this area may be taken now, as far as is known without a clock."""
        area = self._areas[wanted]
        return bool(area.queue or area.passed_over.woken)

    def next_due(self, wanted: Area) -> float | None:
        """Return when the next waiting entry becomes due. Stale items are passed over."""
        waiting = self._areas[wanted].waiting
        while waiting:
            if self._is_waiting(wanted, *waiting[0]):
                return waiting[0][0]
            heapq.heappop(waiting)
        return None

    def hasten(self, latest: Latest, now: float, moving: Mapping[QueueId, Entry], *, is_moved: bool = False) -> set[Area]:
        """As `IQueue.hasten`, for all entries but those in `moving`, or (`is_moved`) for those alone. Return the areas in
        which entries became due by it."""
        due: dict[QueueId, float] = {}
        """Entries that wait for another time than before."""
        for known in self.messages.values():
            for number, entry in known.entries.items():
                queue_id = QueueId(known.message.spool_id, number)
                if (moving.get(queue_id) is entry) is not is_moved:
                    continue
                if queue_id in self.given_back:
                    self.given_back[queue_id] = due[queue_id] = latest(entry.area, entry.attempts, self.given_back[queue_id])
                    entry.due_at = min(entry.due_at, due[queue_id])
                elif (until := latest(entry.area, entry.attempts, entry.due_at)) < entry.due_at:
                    entry.due_at = due[queue_id] = until
        return self._wait_anew(due, now)

    def _wait_anew(self, due: Mapping[QueueId, float], now: float) -> set[Area]:
        touched: set[Area] = set()
        for wanted, area in self._areas.items():
            waiting: list[tuple[float, SpoolId, int]] = []
            for due_at, spool_id, number in area.waiting:
                queue_id = QueueId(spool_id, number)
                if queue_id not in due:
                    waiting.append((due_at, spool_id, number))
            for (spool_id, number), until in due.items():
                entry = self.messages[spool_id].entries[number]
                if entry.area is wanted:
                    waiting.append((until, spool_id, number))
                    if until <= now:
                        touched.add(wanted)
            heapq.heapify(waiting)
            area.waiting = waiting
        return touched

    def make_due(self, known: M, entry: Entry, now: float) -> None:
        """Make a waiting entry due now."""
        if entry.number not in known.out and entry.due_at > now:
            entry.due_at = now
            self._areas[entry.area].add(known, entry)

    def newest_id(self) -> SpoolId:
        """Return the highest spool id of the messages that are there now; 0: there is none."""
        return max(self.messages, default=SpoolId(0))

    def messages_between(self, first: SpoolId, last: SpoolId) -> Iterator[M]:
        """Yield messages in the order of their spool ids, from `first` to `last`. The index may change between two steps."""
        for spool_id in sorted([spool_id for spool_id in self.messages if first <= spool_id <= last]):
            known = self.messages.get(spool_id)
            if known is not None:
                yield known
