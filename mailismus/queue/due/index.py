"""Index in memory of entries that are due, wait for their time, or are out (pure).

    put -> waiting: a heap by time -> ready: by message, in FIFO order -> take -> out -> settle, give_back

The index knows no file, no clock and no Deferred. Its changes are durable before, if the provider's are at all: the caller
of `add`, `put` and `settle` waits for that first.

Per message: its entries by number; the numbers of those that are out. Per area: messages with entries that may be taken,
oldest first; a heap of waiting entries; the lines of senders that were passed over (`queue.due.passed_over`).
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Generic, TypeVar

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.due.passed_over import PassedOver
from mailismus.queue.interface import Area, Entry, Latest, Message, Shares

MOST_TAKEN = 1000
"""Entries of one message that were taken and are still in its list: their memory is freed together."""

MOST_PASSED = 5000
"""Messages that one take moves to the lines of senders that were passed over: a take must be short."""


class DueMessage:
    """One message of the index. A provider adds its own facts in a subclass."""

    __slots__ = ("entries", "message", "out", "since")

    def __init__(self, message: Message) -> None:
        self.message = message
        """Facts of the message. Its `entries` are not used, but for those of a new message (`DueIndex.add_new`): it is
        handed out as it is, if all are taken at once."""
        self.entries: dict[int, Entry] = {}
        """By number."""
        self.out: set[int] = set()
        """Numbers of the entries that are out."""
        self.since = 0.0
        """When it was added, UTC seconds."""


M = TypeVar("M", bound=DueMessage)


class _Ready(Generic[M]):
    """The entries of one message that may be taken from one area: `entries` from the position `first` on."""

    __slots__ = ("entries", "first", "message")

    def __init__(self, message: M, entries: list[Entry]) -> None:
        self.message = message
        self.entries = entries
        self.first = 0

    @property
    def is_empty(self) -> bool:
        """Whether no entry is left."""
        return self.first == len(self.entries)


class _AreaIndex(Generic[M]):
    """Entries of one area that may be taken, or wait for their time."""

    __slots__ = ("by_id", "entry_count", "passed_over", "queue", "waiting")

    def __init__(self) -> None:
        self.entry_count = 0
        """Entries of the area, out or not."""
        self.queue: deque[_Ready[M]] = deque()
        self.by_id: dict[SpoolId, _Ready[M]] = {}
        """Messages of the queue and of the lines of senders."""
        self.passed_over: PassedOver[_Ready[M]] = PassedOver()
        self.waiting: list[tuple[float, SpoolId, int]] = []

    def add(self, known: M, entry: Entry) -> None:
        """Add an entry that may be taken now."""
        spool_id = known.message.spool_id
        ready = self.by_id.get(spool_id)
        if ready is None:
            ready = self.by_id[spool_id] = _Ready(known, [])
            self.queue.append(ready)
        ready.message = known  # another object, where the message was not in the index between
        ready.entries.append(entry)

    def wait(self, spool_id: SpoolId, number: int, due_at: float) -> None:
        """Add an entry that may be taken from `due_at` on."""
        heapq.heappush(self.waiting, (due_at, spool_id, number))


class DueIndex(Generic[M]):
    """All messages that a provider has in memory."""

    def __init__(self) -> None:
        self.messages: dict[SpoolId, M] = {}
        self._areas: dict[Area, _AreaIndex[M]] = {area: _AreaIndex() for area in Area}
        self._each_area = tuple(self._areas.values())
        self.entry_count = 0
        self.given_back: dict[QueueId, float] = {}
        """Times until which given back entries wait: no settlement stores them."""

    def add(self, known: M, now: float) -> None:
        """Add a new message with its entries."""
        self.messages[known.message.spool_id] = known
        known.since = now
        self.entry_count += len(known.entries)
        for entry in known.entries.values():
            self._place(known, entry, now)

    def add_new(self, known: M, wanted: Area, entries: list[Entry], now: float) -> None:
        """Add a message whose spool id the index has never had, with all of its entries: they are of this area, and may be
        taken at once."""
        known.since = now
        spool_id, area, count = known.message.spool_id, self._areas[wanted], len(entries)
        self.messages[spool_id] = known
        self.entry_count += count
        area.entry_count += count
        ready = area.by_id[spool_id] = _Ready(known, entries)
        area.queue.append(ready)

    def put(self, known: M, entry: Entry, now: float) -> None:
        """Add a new entry of a message, or the new state of one."""
        before = known.entries.get(entry.number)
        if before is None:
            self.entry_count += 1
        else:
            self._areas[before.area].entry_count -= 1
        known.entries[entry.number] = entry
        self._place(known, entry, now)

    def _place(self, known: M, entry: Entry, now: float) -> None:
        area = self._areas[entry.area]
        area.entry_count += 1
        if entry.due_at <= now:
            area.add(known, entry)
        else:
            area.wait(known.message.spool_id, entry.number, entry.due_at)

    def take(self, wanted: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        """As `IQueue.take`. Half of `limit` is for senders that were passed over before, while others wait too: neither
        starve the others."""
        area = self._areas[wanted]
        self._ripen(area, wanted, now)
        taken: list[Message] = []
        if not area.passed_over.lines:
            self._take_queued(area, limit, shares, taken)
            return taken
        if limit <= 0:
            return taken
        left = limit - self._take_passed_over(area, max(1, limit // 2) if area.queue else limit, shares, taken)
        left -= self._take_queued(area, left, shares, taken)
        if left > 0:
            self._take_passed_over(area, left, shares, taken)
        return taken

    def _take_queued(self, area: _AreaIndex[M], limit: int, shares: Shares | None, taken: list[Message]) -> int:
        """Take from the queue. Return how many entries."""
        queue, given_back, passed_over, passed, most = area.queue, self.given_back, area.passed_over, 0, limit
        while limit > 0 and queue:
            ready = queue.popleft()
            known = ready.message
            template = known.message
            waiting, first, out, by_number = ready.entries, ready.first, known.out, known.entries
            count = len(waiting)
            if (
                template.entries is waiting  # nothing of it was taken before: the message itself is handed out
                and shares is None
                and count <= limit
                and count == len(by_number)
                and not (first or out or given_back)
                and all(map(is_, waiting, by_number.values()))
            ):
                out.update(by_number)
                limit -= count
                taken.append(template)
                del area.by_id[template.spool_id]
                continue
            if shares is not None and template.sender in passed_over.lines:
                passed_over.add(template.sender, template.spool_id, ready)
                passed += 1
                if passed == MOST_PASSED:
                    break
                continue
            count, is_refused = self._take_ready(ready, limit, shares, taken)
            limit -= count
            if self._is_over(area, ready):
                continue
            if is_refused:
                passed_over.add(template.sender, template.spool_id, ready)
            else:
                queue.appendleft(ready)
        return most - limit

    def _take_passed_over(self, area: _AreaIndex[M], limit: int, shares: Shares | None, taken: list[Message]) -> int:
        """Take from the lines of senders that were passed over: all (`shares` None), or those that may be asked about again.
        Return how many entries."""
        passed_over, most = area.passed_over, limit
        for sender in list(passed_over.lines if shares is None else passed_over.woken):
            while limit > 0 and (ready := passed_over.first(sender)) is not None:
                count, is_refused = self._take_ready(ready, limit, shares, taken)
                limit -= count
                if self._is_over(area, ready):
                    passed_over.remove(sender, ready.message.message.spool_id)
                elif is_refused:
                    passed_over.refuse(sender, is_next=count > 0)
                    break
            if limit <= 0:
                passed_over.move_to_end(sender)
                break
        return most - limit

    def _take_ready(self, ready: _Ready[M], limit: int, shares: Shares | None, taken: list[Message]) -> tuple[int, bool]:
        """Take entries of one message, as many as its sender's share allows. Return how many, and whether that were fewer
        than wanted."""
        known = ready.message
        template = known.message
        waiting, first, out, by_number, given_back = ready.entries, ready.first, known.out, known.entries, self.given_back
        room = wanted = min(limit, len(waiting) - first)
        if shares is not None and wanted:
            room = shares.room_for(template.sender, wanted)
        is_refused = room < wanted
        entries: list[Entry] = []
        while room > 0 and first < len(waiting):
            entry = waiting[first]
            first += 1
            number = entry.number
            if by_number.get(number) is entry and number not in out:
                out.add(number)
                if given_back:
                    given_back.pop(QueueId(template.spool_id, number), None)
                entries.append(entry)
                room -= 1
        if first > MOST_TAKEN:
            del waiting[:first]
            first = 0
        ready.first = first
        if entries:
            taken.append(
                Message(
                    template.spool_id,
                    template.sender,
                    template.client,
                    template.eightbit,
                    template.received_at,
                    template.size_bytes,
                    template.recipient_count,
                    entries,
                    template.stuffed_dots,
                    template.words,
                )
            )
        return len(entries), is_refused

    def _is_over(self, area: _AreaIndex[M], ready: _Ready[M]) -> bool:
        """Whether nothing of the message can be taken any more. Then forget it, but for its place in a line."""
        spool_id = ready.message.message.spool_id
        if ready.is_empty or self.messages.get(spool_id) is not ready.message:
            del area.by_id[spool_id]
            return True
        return False

    def _ripen(self, area: _AreaIndex[M], wanted: Area, now: float) -> None:
        """Move entries whose time has come to those that may be taken."""
        waiting = area.waiting
        while waiting and waiting[0][0] <= now:
            _, spool_id, number = heapq.heappop(waiting)
            known = self.messages.get(spool_id)
            if known is None or number in known.out:
                continue
            entry = known.entries.get(number)
            if entry is not None and entry.area is wanted and entry.due_at <= now:
                area.add(known, entry)

    def give_back(self, queue_ids: Iterable[QueueId], not_before: float) -> set[Area]:
        """As `IQueue.give_back`. Return the areas of the entries."""
        touched = set()
        for spool_id, number in queue_ids:
            known = self.messages.get(spool_id)
            if known is None:
                continue
            if number in known.out:
                known.out.discard(number)
                entry = known.entries[number]
                self._areas[entry.area].wait(spool_id, number, not_before)
                self.given_back[QueueId(spool_id, number)] = not_before
                touched.add(entry.area)
        return touched

    def end(self, known: M, numbers: Sequence[int]) -> bool:
        """Remove entries that are there. Return whether the message has none left."""
        entries, spool_id = known.entries, known.message.spool_id
        known.out.difference_update(numbers)
        if self.given_back:
            for number in numbers:
                self.given_back.pop(QueueId(spool_id, number), None)
        if len(numbers) == 1:
            self._areas[entries.pop(numbers[0]).area].entry_count -= 1
        else:
            for area, count in Counter([entries.pop(number).area for number in numbers]).items():
                self._areas[area].entry_count -= count
        self.entry_count -= len(numbers)
        if entries:
            return False
        self._forget(known)
        return True

    def replace(self, known: M, successor: Entry, now: float) -> None:
        """Replace the entry of the same number, if there is one."""
        number = successor.number
        known.out.discard(number)
        self.given_back.pop(QueueId(known.message.spool_id, number), None)
        if number in known.entries:
            self.put(known, successor, now)

    def move(self, known: M, number: int) -> None:
        """Remove an entry that moved to another index; its message goes with its last one."""
        moved = known.entries.pop(number, None)
        if moved is not None:
            self.entry_count -= 1
            self._areas[moved.area].entry_count -= 1
        known.out.discard(number)
        self.given_back.pop(QueueId(known.message.spool_id, number), None)
        if not known.entries:
            self._forget(known)

    def _forget(self, known: M) -> None:
        """Remove a message without entries."""
        spool_id = known.message.spool_id
        self.messages.pop(spool_id, None)
        for area in self._each_area:
            if area.passed_over.lines and area.passed_over.remove(known.message.sender, spool_id):
                del area.by_id[spool_id]

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

    def has_ready(self, wanted: Area) -> bool:
        """Whether entries of this area may be taken now, as far as is known without a clock."""
        area = self._areas[wanted]
        return bool(area.queue or area.passed_over.woken)

    def next_due(self, wanted: Area) -> float | None:
        """Return when the next waiting entry becomes due. Stale items are passed over."""
        waiting = self._areas[wanted].waiting
        while waiting:
            due_at, spool_id, number = waiting[0]
            known = self.messages.get(spool_id)
            if known is not None and number not in known.out:
                entry = known.entries.get(number)
                if entry is not None and entry.area is wanted and entry.due_at <= due_at:
                    return due_at
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

    def messages_from(self, first: SpoolId) -> Iterator[M]:
        """Yield messages in the order of their spool ids, from `first` on. The index may change between two steps."""
        for spool_id in sorted(self.messages):
            if spool_id >= first:
                known = self.messages.get(spool_id)
                if known is not None:
                    yield known
