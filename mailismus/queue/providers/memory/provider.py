"""A queue that lies in memory: the model of the seam (`queue.interface`), and what tests of everything else run on.

*Rules*: it behaves like a provider with a disk wherever one could tell: what is committed takes effect in a later turn of
the clock, never in the call; bytes beyond `large_bytes` are read in pieces; nothing is handed out twice. It is
deterministic: the same calls and the same clock give the same answers.

*Not here*: durability. It keeps nothing over a restart and says so; no server may be configured with it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IReactorTime

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import (
    Area,
    Entry,
    Filter,
    Flushed,
    IContent,
    Latest,
    Message,
    Page,
    Placement,
    Settlement,
    Submission,
    Summary,
)
from mailismus.queue.providers.memory.content import MemoryContent
from mailismus.queue.providers.memory.draft import MemoryDraft
from mailismus.queue.providers.memory.held import StoredEntry, StoredMessage
from mailismus.queue.providers.memory.looking import find, summarize
from mailismus.queue.words import check_words

MAX_ENVELOPE_BYTES = 4 << 20


class MemoryQueue:
    """An `IQueue` in memory. Commits take effect in a later turn of `clock`.

    `large_bytes`: content beyond it is read in pieces. `pause_bytes`: a draft's `write` asks to wait after so many
    bytes (0: never).
    """

    def __init__(self, clock: IReactorTime, *, epoch: int = 1, large_bytes: int = 128 << 10, pause_bytes: int = 0) -> None:
        self._clock = clock
        self._next_id = (epoch << 32) + 1
        self._large_bytes = large_bytes
        self._pause_bytes = pause_bytes
        self._held: dict[SpoolId, StoredMessage] = {}
        self._order: list[SpoolId] = []
        self._heaps: dict[Area, list[tuple[float, int, StoredEntry]]] = {area: [] for area in Area}
        self._tickets = 0
        self._waiting: dict[Area, list[Deferred[None]]] = {area: [] for area in Area}
        self._trouble: Unavailable | None = None
        self._trouble_once: Unavailable | None = None
        self._under_way: list[tuple[Sequence[Submission], Sequence[Settlement], Deferred[Sequence[SpoolId]]]] = []
        self._is_scheduled = False

    # For tests

    def fail_next_commit(self, error: Unavailable | None = None) -> None:
        """The next commit of a submission fails with `error`."""
        self._trouble_once = error or Unavailable("the disk is sick")

    def break_down(self, error: Unavailable | None = None) -> None:
        """Until `mend`: drafts and submissions are refused with `error`, settlements wait."""
        self._trouble = error or Unavailable("the disk is sick")

    def mend(self) -> None:
        """The trouble is over: settlements that waited are done."""
        self._trouble = None
        self._schedule()

    # In

    def open(self) -> Deferred[None]:
        return succeed(None)

    def close(self) -> Deferred[None]:
        self._turn()
        return succeed(None)

    def draft(self) -> MemoryDraft:
        if self._trouble is not None:
            raise self._trouble
        spool_id = SpoolId(self._next_id)
        self._next_id += 1
        return MemoryDraft(spool_id, self._clock, self._pause_bytes)

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        check_words(submissions, settlements, MAX_ENVELOPE_BYTES)
        if submissions:
            trouble, self._trouble_once = self._trouble_once or self._trouble, None
            if trouble is not None:
                return self._fail_later(trouble)
            for submission in submissions:
                draft = submission.draft
                if not isinstance(draft, MemoryDraft) or not draft.is_open:
                    return self._fail_later(Unavailable("the draft is not one that can be committed"))
            for submission in submissions:
                draft = submission.draft
                assert isinstance(draft, MemoryDraft)
                draft.finish()
        for settlement in settlements:
            line = self._line(settlement.queue_id)
            if line is not None:
                line.settles_under_way += 1
                line.ticket = 0
        done: Deferred[Sequence[SpoolId]] = Deferred()
        self._under_way.append((tuple(submissions), tuple(settlements), done))
        self._schedule()
        return done

    def _fail_later(self, error: Unavailable) -> Deferred[Sequence[SpoolId]]:
        done: Deferred[Sequence[SpoolId]] = Deferred()
        self._clock.callLater(0, done.errback, error)
        return done

    def _schedule(self) -> None:
        if not self._is_scheduled and self._under_way:
            self._is_scheduled = True
            self._clock.callLater(0, self._turn)

    def _turn(self) -> None:
        """One batch: all that was asked for since the last one becomes true."""
        self._is_scheduled = False
        batch, self._under_way = self._under_way, []
        if self._trouble is not None:
            # What was accepted before the trouble came is as good as written; only settlements alone must wait.
            self._under_way = [item for item in batch if not item[0]]
            batch = [item for item in batch if item[0]]
        changed: set[Area] = set()
        fired: list[tuple[Deferred[Sequence[SpoolId]], list[SpoolId]]] = []
        for submissions, settlements, done in batch:
            for submission in submissions:
                self._store(submission, changed)
            gone = [spool_id for settlement in settlements if (spool_id := self._settle(settlement, changed)) is not None]
            fired.append((done, gone))
        for done, gone in fired:
            done.callback(gone)
        self._wake(changed)

    def _store(self, submission: Submission, changed: set[Area]) -> None:
        draft = submission.draft
        assert isinstance(draft, MemoryDraft)
        envelope = submission.envelope
        placements = submission.placements
        if placements is None:
            arrived = submission.received_at
            placements = tuple(
                Placement(number, Area.INCOMING, arrived, 0, None, b"-") for number in range(1, len(envelope.recipients) + 1)
            )
        if not placements:
            return
        content = draft.content
        message = Message(
            draft.spool_id,
            envelope.sender,
            envelope.client,
            envelope.eightbit,
            submission.received_at,
            len(content) - envelope.stuffed_dots,
            len(envelope.recipients),
            [],
            envelope.stuffed_dots,
            envelope.words,
        )
        held = StoredMessage(message, content)
        self._held[draft.spool_id] = held
        insort(self._order, draft.spool_id)
        for placement in placements:
            recipient = envelope.recipients[placement.number - 1]
            entry = Entry(
                placement.number,
                recipient,
                placement.area,
                placement.due_at,
                placement.attempts,
                placement.reply,
                placement.host,
                placement.words,
            )
            line = held.lines[placement.number] = StoredEntry(held, entry)
            self._wait_until(line, placement.due_at)
            changed.add(placement.area)

    def _settle(self, settlement: Settlement, changed: set[Area]) -> SpoolId | None:
        """Gives the spool id of a message that this settled the last entry of."""
        line = self._line(settlement.queue_id)
        if line is None:
            return None
        held, old = line.held, line.entry
        line.settles_under_way -= 1
        if line.is_out:
            line.is_out = False
            held.out -= 1
        changed.add(old.area)  # room below `per_message`
        if settlement.area is None:
            del held.lines[old.number]
            line.ticket = 0
            if held.lines:
                return None
            spool_id = held.message.spool_id
            del self._held[spool_id]
            del self._order[bisect_left(self._order, spool_id)]
            return spool_id
        line.entry = Entry(
            old.number,
            old.recipient,
            settlement.area,
            settlement.due_at,
            settlement.attempts,
            settlement.reply,
            settlement.host,
            old.words if settlement.words is None else settlement.words or None,
        )
        if not line.settles_under_way:
            self._wait_until(line, settlement.due_at)
        changed.add(settlement.area)
        return None

    # Out

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        heap = self._heaps[area]
        taken: dict[SpoolId, Message] = {}
        skipped: list[tuple[float, int, StoredEntry]] = []
        while limit > 0 and heap and heap[0][0] <= now:
            item = heapq.heappop(heap)
            line = item[2]
            if line.ticket != item[1]:
                continue
            held = line.held
            if held.out >= per_message:
                skipped.append(item)
                continue
            line.ticket = 0
            line.is_out = True
            held.out += 1
            limit -= 1
            spool_id = held.message.spool_id
            message = taken.get(spool_id)
            if message is None:
                message = taken[spool_id] = attrs.evolve(held.message, entries=[])
            message.entries.append(line.entry)
        for item in skipped:
            heapq.heappush(heap, item)
        return succeed(list(taken.values()))

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        changed: set[Area] = set()
        for queue_id in queue_ids:
            line = self._line(queue_id)
            if line is None or not line.is_out or line.settles_under_way:
                continue
            line.is_out = False
            line.held.out -= 1
            self._wait_until(line, not_before)
            changed.add(line.entry.area)
        if changed:
            self._clock.callLater(0, self._wake, changed)

    def ready(self, area: Area) -> Deferred[None]:
        due_at = self.next_due(area)
        if due_at is not None and due_at <= self._clock.seconds():
            return succeed(None)
        waiting: Deferred[None] = Deferred(self._waiting[area].remove)
        self._waiting[area].append(waiting)
        return waiting

    def next_due(self, area: Area) -> float | None:
        heap = self._heaps[area]
        while heap and heap[0][2].ticket != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        held = self._held.get(spool_id)
        if held is None:
            return fail(Unavailable(f"no message {spool_id:016X}"))
        if len(held.content) <= self._large_bytes:
            return held.content
        return succeed(MemoryContent(held.content, self._clock))

    # Looking

    def counting_plan(self) -> None:
        return None

    def summary(self) -> Deferred[Summary]:
        return succeed(summarize(self._held.values()))

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return succeed(find(self._held, self._order, wanted, after, limit))

    def hasten(self, latest: Latest, now: float) -> None:
        touched = set()
        for line in [line for held in self._held.values() for line in held.lines.values()]:
            until = latest(line.entry.area, line.entry.attempts, line.wake_at)
            if line.ticket and until < line.wake_at:
                line.entry = attrs.evolve(line.entry, due_at=min(line.entry.due_at, until))
                self._wait_until(line, until)
                touched.add(line.entry.area)
        if touched:
            self._clock.callLater(0, self._wake, touched)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        number = 0
        for held in self._held.values():
            if wanted.spool_id is not None and held.message.spool_id != wanted.spool_id:
                continue
            for line in held.lines.values():
                entry = line.entry
                if entry.area is not Area.DEFERRED or wanted.area not in (None, Area.DEFERRED) or not line.ticket:
                    continue
                if wanted.matches(held.message, entry):
                    number += 1
                    if line.wake_at > now:
                        self._wait_until(line, now)
        if number:
            self._clock.callLater(0, self._wake, {Area.DEFERRED})
        return succeed(Flushed(number))

    @property
    def max_envelope_bytes(self) -> int:
        return MAX_ENVELOPE_BYTES

    # Within

    def _line(self, queue_id: QueueId) -> StoredEntry | None:
        held = self._held.get(queue_id.spool_id)
        return held.lines.get(queue_id.number) if held is not None else None

    def _wait_until(self, line: StoredEntry, wake_at: float) -> None:
        self._tickets += 1
        line.ticket = self._tickets
        line.wake_at = wake_at
        heapq.heappush(self._heaps[line.entry.area], (wake_at, self._tickets, line))

    def _wake(self, areas: set[Area]) -> None:
        for area in areas:
            waiting, self._waiting[area] = self._waiting[area], []
            for deferred in list(waiting):
                if not deferred.called:  # one that fired before may have cancelled it
                    deferred.callback(None)
