"""Entries of messages by area: ready, waiting for their time, or out (pure).

    put -> waiting: a heap by time -> ready: by message, in FIFO order -> take -> out -> end

Per message: its entries by number; the numbers of those that are out. Per area: messages with entries that may be taken,
oldest first; a heap of waiting entries; the lines of senders that were passed over (`queue.due.passed_over`).

*Not here*: what changes the time of an entry (`index`).
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Generic, TypeVar

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.due.passed_over import PassedOver
from mailismus.queue.interface import Area, Entry, Message, Shares

MOST_TAKEN = 1000
"""Entries of one message that were taken and are still in its list: their memory is freed together."""

MOST_PASSED = 5000
"""Messages that one take moves to the lines of senders that were passed over: a take must be short."""


NONE_OUT: frozenset[int] = frozenset()
"""Of a message without an entry that is out: an empty set of its own would be a third of its memory while it waits."""


class DueMessage:
    """One message of the index. A provider adds its own facts in a subclass."""

    __slots__ = ("entries", "message", "out", "since")

    def __init__(self, message: Message) -> None:
        self.message = message
        """Facts of the message. Its `entries` are not used, but for those of a new message (`DueIndex.add_new`): it is
        handed out as it is, if all are taken at once."""
        self.entries: dict[int, Entry] = {}
        """By number."""
        self.out: set[int] | frozenset[int] = NONE_OUT
        """Numbers of the entries that are out. Read only: the methods below change them."""
        self.since = 0.0
        """When it was added, UTC seconds."""

    def changing_out(self) -> set[int]:
        """The numbers of the entries that are out, to add to them."""
        out = self.out
        if not isinstance(out, set):
            out = self.out = set()
        return out

    def go_out(self, numbers: Iterable[int]) -> None:
        """Note that these entries are out."""
        self.changing_out().update(numbers)

    def go_out_whole(self) -> None:
        """Note that all of its entries are out, none of which was before (hot path)."""
        self.out = set(self.entries)

    def come_back_whole(self) -> None:
        """Note that none of its entries is out any more (hot path)."""
        self.out = NONE_OUT

    def come_back(self, numbers: Iterable[int]) -> None:
        """Note that these entries are out no more."""
        out = self.out
        if isinstance(out, set):
            out.difference_update(numbers)
            if not out:
                self.out = NONE_OUT


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


class DueEntries(Generic[M]):
    """The entries of all messages that a provider has in memory: added, taken, ended."""

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
                known.go_out_whole()
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
        for sender in list(passed_over.lines) if shares is None else shares.in_order(passed_over.woken):
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
        waiting, first, by_number, given_back = ready.entries, ready.first, known.entries, self.given_back
        left = len(waiting) - first
        room = wanted = min(limit, left)
        if shares is not None and wanted:
            room = shares.room_for(template.sender, wanted, is_cut=wanted < left)
        is_refused = room < wanted
        if room <= 0:
            return 0, is_refused
        out, entries = known.changing_out(), list[Entry]()
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
            taken.append(template.with_entries(entries))
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

    def claim(self, queue_id: QueueId) -> bool:
        """Hand out an entry that is there, whatever its area and its time. Return whether it was not out before."""
        spool_id, number = queue_id
        known = self.messages[spool_id]
        if number in known.out:
            return False
        known.go_out((number,))
        self.given_back.pop(queue_id, None)
        return True

    def end(self, known: M, numbers: Sequence[int]) -> bool:
        """Remove entries that are there. Return whether the message has none left."""
        entries, spool_id = known.entries, known.message.spool_id
        if len(numbers) == len(entries):
            known.come_back_whole()
        else:
            known.come_back(numbers)
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

    def _forget(self, known: M) -> None:
        """Remove a message without entries."""
        spool_id = known.message.spool_id
        self.messages.pop(spool_id, None)
        for area in self._each_area:
            if area.passed_over.lines and area.passed_over.remove(known.message.sender, spool_id):
                del area.by_id[spool_id]
