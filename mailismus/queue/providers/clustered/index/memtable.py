"""The young: messages and entries whose durable copy is in the journal, as an index in memory.

Knows which entries may be taken and which are out; knows no file, no clock and no Deferred. Every change here is of
something that is durable already: who calls `add`, `settle` waits for the barrier first.

Per message: its entries by number; those handed out.
Per area: messages with entries that may be taken, oldest first; a heap of entries that wait for their time.
"""

from __future__ import annotations

import heapq
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Latest, Message


class JournaledMessage:
    """One message of the index."""

    __slots__ = ("checksum", "content", "entries", "is_in_silo", "message", "offset", "out", "segment", "since")

    def __init__(self, message: Message) -> None:
        self.message = message
        """What is said of the message; `entries` is not used."""
        self.entries: dict[int, Entry] = {}
        self.out: set[int] = set()
        """Numbers of entries handed out."""
        self.content: bytes | None = None
        """The content when it is in memory."""
        self.checksum = 0
        """Of the content, where it is in the journal alone: what is read there may have been overwritten since."""
        self.segment = 0
        """Number of the segment that holds its newest record."""
        self.offset = 0
        """Where the content begins in that segment's file."""
        self.is_in_silo = False
        """The content is a message file, not in the journal."""
        self.since = 0.0
        """When it became young, UTC seconds."""

    def arrive(self, entries: Iterable[Entry], segment: int, offset: int) -> None:
        """It is durable in this segment, with these entries."""
        self.entries = {entry.number: entry for entry in entries}
        self.segment, self.offset = segment, offset

    def move_to(self, segment: int, offset: int) -> None:
        """It is durable in this segment now, its content at this offset."""
        self.segment, self.offset = segment, offset

    def hold_content(self, content: bytes) -> None:
        """Keep this content in memory."""
        self.content = content

    def drop_content(self) -> int:
        """Keep no content in memory; return how many bytes that frees."""
        content, self.content = self.content, None
        return 0 if content is None else len(content)

    def put_in_silo(self) -> None:
        """The content is a message file from now on."""
        self.is_in_silo = True

    def put_in_journal(self, segment: int, offset: int) -> None:
        """The content is in this segment, at this offset, and no message file."""
        self.is_in_silo = False
        self.move_to(segment, offset)

    def leave_content(self, content: bytes | memoryview) -> None:
        """This content is in the journal alone from now on."""
        self.checksum = zlib.crc32(content)
        self.content = None

    def has_written(self, content: bytes) -> bool:
        """Whether this, read in the journal, is what was written there."""
        return zlib.crc32(content) == self.checksum


class _Ready:
    """The entries of one message that may be taken from one area."""

    __slots__ = ("entries", "young")

    def __init__(self, young: JournaledMessage) -> None:
        self.young = young
        self.entries: deque[Entry] = deque()


class _AreaIndex:
    """What may be taken of one area, and what waits for its time."""

    __slots__ = ("by_id", "entry_count", "parked", "parked_at", "queue", "waiting")

    def __init__(self) -> None:
        self.entry_count = 0
        """Entries that stand in it, out or not."""
        self.queue: deque[_Ready] = deque()
        self.by_id: dict[SpoolId, _Ready] = {}
        self.parked: dict[SpoolId, _Ready] = {}
        """Messages that have as many entries out as they may: in no queue until one comes back."""
        self.parked_at = 0
        """The least number of entries out that a message was parked for."""
        self.waiting: list[tuple[float, SpoolId, int]] = []

    def add(self, young: JournaledMessage, entry: Entry) -> None:
        """The entry may be taken now."""
        spool_id = young.message.spool_id
        ready = self.by_id.get(spool_id)
        if ready is None:
            ready = self.parked.get(spool_id)
            if ready is None:
                ready = self.by_id[spool_id] = _Ready(young)
                self.queue.append(ready)
        ready.young = young  # another object, where the message rested between
        ready.entries.append(entry)

    def wait(self, spool_id: SpoolId, number: int, due_at: float) -> None:
        """The entry may be taken from `due_at` on."""
        heapq.heappush(self.waiting, (due_at, spool_id, number))

    def unpark(self, spool_id: SpoolId) -> None:
        """One of the message's entries came back: more may go out."""
        ready = self.parked.pop(spool_id, None)
        if ready is not None and ready.entries:
            self.by_id[spool_id] = ready
            self.queue.append(ready)


class Memtable:
    """All young messages."""

    def __init__(self, out_resting: Mapping[SpoolId, int] | None = None) -> None:
        """`out_resting`: how many other entries of a message are out, while resting."""
        self._out_resting: Mapping[SpoolId, int] = {} if out_resting is None else out_resting
        self.messages: dict[SpoolId, JournaledMessage] = {}
        self._areas = {area: _AreaIndex() for area in Area}
        self.entry_count = 0
        self.given_back: dict[QueueId, float] = {}
        """Entries that were given back, and until when they stay: what does not change when they are moved."""

    def add(self, young: JournaledMessage, now: float) -> None:
        """A new message with its entries."""
        self.messages[young.message.spool_id] = young
        young.since = now
        self.entry_count += len(young.entries)
        for entry in young.entries.values():
            self._place(young, entry, now)

    def put(self, young: JournaledMessage, entry: Entry, now: float) -> None:
        """A new entry of a message, or the new state of one: it may be taken when it is due."""
        known = young.entries.get(entry.number)
        if known is None:
            self.entry_count += 1
        else:
            self._areas[known.area].entry_count -= 1
        young.entries[entry.number] = entry
        self._place(young, entry, now)

    def _place(self, young: JournaledMessage, entry: Entry, now: float) -> None:
        area = self._areas[entry.area]
        area.entry_count += 1
        if entry.due_at <= now:
            area.add(young, entry)
        else:
            area.wait(young.message.spool_id, entry.number, entry.due_at)

    def take(self, wanted: Area, limit: int, now: float, per_message: int) -> list[Message]:
        """As `IQueue.take`."""
        area = self._areas[wanted]
        self._ripen(area, wanted, now)
        taken: list[Message] = []
        queue = area.queue
        out_resting, given_back = self._out_resting, self.given_back
        if area.parked and per_message > area.parked_at:
            for spool_id in list(area.parked):
                area.unpark(spool_id)
        while limit > 0 and queue:
            ready = queue.popleft()
            young = ready.young
            template = young.message
            entries: list[Entry] = []
            may_be_out = per_message - out_resting.get(template.spool_id, 0) if out_resting else per_message
            room = min(limit, may_be_out - len(young.out))
            while room > 0 and ready.entries:
                entry = ready.entries.popleft()
                if young.entries.get(entry.number) is entry and entry.number not in young.out:
                    young.out.add(entry.number)
                    if given_back:
                        given_back.pop(QueueId(template.spool_id, entry.number), None)
                    entries.append(entry)
                    room -= 1
            if entries:
                limit -= len(entries)
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
                    )
                )
            if not ready.entries or self.messages.get(template.spool_id) is not young:
                del area.by_id[template.spool_id]
            elif len(young.out) >= may_be_out:
                del area.by_id[template.spool_id]
                area.parked_at = min(per_message, area.parked_at) if area.parked else per_message
                area.parked[template.spool_id] = ready
            else:
                queue.appendleft(ready)
        return taken

    def _ripen(self, area: _AreaIndex, wanted: Area, now: float) -> None:
        """Entries whose time has come go to where they may be taken."""
        waiting = area.waiting
        while waiting and waiting[0][0] <= now:
            _, spool_id, number = heapq.heappop(waiting)
            young = self.messages.get(spool_id)
            if young is None or number in young.out:
                continue
            entry = young.entries.get(number)
            if entry is not None and entry.area is wanted and entry.due_at <= now:
                area.add(young, entry)

    def give_back(self, queue_ids: Iterable[QueueId], not_before: float) -> set[Area]:
        """As `IQueue.give_back`; the areas that entries went back to."""
        touched = set()
        for spool_id, number in queue_ids:
            young = self.messages.get(spool_id)
            if young is None:
                continue
            if number in young.out:
                young.out.discard(number)
                entry = young.entries[number]
                self._areas[entry.area].wait(spool_id, number, not_before)
                self.given_back[QueueId(spool_id, number)] = not_before
                touched.add(entry.area)
            self.unpark(spool_id)
        return touched

    def settle(self, young: JournaledMessage, number: int, successor: Entry | None, now: float) -> bool:
        """An entry is over (`successor` None) or goes on as another; whether that was the message's last entry."""
        young.out.discard(number)
        spool_id = young.message.spool_id
        self.given_back.pop(QueueId(spool_id, number), None)
        if successor is None:
            over = young.entries.pop(number, None)
            if over is not None:
                self.entry_count -= 1
                self._areas[over.area].entry_count -= 1
            if not young.entries:
                self.messages.pop(spool_id, None)
                for area in self._areas.values():
                    area.parked.pop(spool_id, None)
                return True
        elif number in young.entries:
            self.put(young, successor, now)
        self.unpark(spool_id)
        return False

    def move(self, young: JournaledMessage, number: int) -> None:
        """The entry rests from now on; its message goes with its last one."""
        moved = young.entries.pop(number, None)
        if moved is not None:
            self.entry_count -= 1
            self._areas[moved.area].entry_count -= 1
        young.out.discard(number)
        spool_id = young.message.spool_id
        self.given_back.pop(QueueId(spool_id, number), None)
        if not young.entries:
            self.messages.pop(spool_id, None)
            for area in self._areas.values():
                area.parked.pop(spool_id, None)

    def count_in(self, wanted: Area) -> int:
        """Entries of this area, out or not."""
        return self._areas[wanted].entry_count

    def oldest_since(self) -> float | None:
        """Since when the oldest message is young, about; None: there is none."""
        oldest = next(iter(self.messages.values()), None)
        return oldest.since if oldest is not None else None

    def unpark(self, spool_id: SpoolId) -> None:
        """One of the message's entries came back: more may go out."""
        for area in self._areas.values():
            if area.parked:
                area.unpark(spool_id)

    def has_ready(self, wanted: Area) -> bool:
        """Whether something of this area may be taken now, as far as is known without a clock."""
        return bool(self._areas[wanted].queue)

    def next_due(self, wanted: Area) -> float | None:
        """When the next waiting entry becomes due. Entries that are gone meanwhile are passed over."""
        waiting = self._areas[wanted].waiting
        while waiting:
            due_at, spool_id, number = waiting[0]
            young = self.messages.get(spool_id)
            if young is not None and number not in young.out:
                entry = young.entries.get(number)
                if entry is not None and entry.area is wanted and entry.due_at <= due_at:
                    return due_at
            heapq.heappop(waiting)
        return None

    def hasten(self, latest: Latest, now: float, moving: Mapping[QueueId, Entry], *, is_moved: bool = False) -> set[Area]:
        """As `IQueue.hasten`, for all entries but those in `moving`, or (`is_moved`) for those alone; the areas in which
        something is due by it."""
        due: dict[QueueId, float] = {}
        """Entries that wait for another time than before."""
        for young in self.messages.values():
            for number, entry in young.entries.items():
                queue_id = QueueId(young.message.spool_id, number)
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

    def visit(self, young: JournaledMessage, entry: Entry, now: float) -> None:
        """A waiting entry is due now."""
        if entry.number not in young.out and entry.due_at > now:
            entry.due_at = now
            self._areas[entry.area].add(young, entry)

    def walk(self, first: SpoolId) -> Iterator[JournaledMessage]:
        """Messages in the order of their spool ids, from `first` on. The index may change between two steps."""
        for spool_id in sorted(self.messages):
            if spool_id >= first:
                young = self.messages.get(spool_id)
                if young is not None:
                    yield young
