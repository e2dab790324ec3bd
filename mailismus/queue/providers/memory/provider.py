"""A queue in memory: the model of the interface (`queue.interface`), and the queue of all other tests.

*Rules*: it behaves like a provider with a disk wherever a caller could tell: a commit takes effect in a later turn of the
clock, never in the call; bytes beyond `large_bytes` are read in pieces; no entry is handed out twice. It is deterministic:
the same calls and the same clock give the same answers.

*Not here*: durability. It keeps nothing over a restart; no server may be configured with it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IReactorTime

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import commit_deferred
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.due.index import DueIndex
from mailismus.queue.entering import entries_of, message_of, removals_of, successor_of
from mailismus.queue.interface import (
    Area,
    CommitListener,
    EndedEntries,
    Filter,
    Flushed,
    Latest,
    M,
    Message,
    Page,
    Settlement,
    Shares,
    Submission,
    Summary,
)
from mailismus.queue.pages import claim_page
from mailismus.queue.providers.memory.content import MemoryContent
from mailismus.queue.providers.memory.draft import MemoryDraft
from mailismus.queue.providers.memory.held import StoredMessage
from mailismus.queue.providers.memory.looking import find, summarize
from mailismus.queue.words import check_words

MAX_ENVELOPE_BYTES = 4 << 20


@attrs.frozen
class _Commit:
    submissions: Sequence[Submission]
    settlements: Sequence[Settlement]
    listener: CommitListener[Any]
    mark: object


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
        self._index: DueIndex[StoredMessage] = DueIndex()
        self._order: list[SpoolId] = []
        self._waiting: dict[Area, list[Deferred[None]]] = {area: [] for area in Area}
        self._error: Unavailable | None = None
        self._next_error: Unavailable | None = None
        self._under_way: list[_Commit] = []
        self._is_scheduled = False

    # For tests

    def fail_next_commit(self, error: Unavailable | None = None) -> None:
        """Fail the next commit of a submission with `error`."""
        self._next_error = error or Unavailable("the disk is sick")

    def break_down(self, error: Unavailable | None = None) -> None:
        """Until `mend`: refuse drafts and submissions with `error`, and let settlements wait."""
        self._error = error or Unavailable("the disk is sick")

    def mend(self) -> None:
        """End `break_down`: waiting settlements are done."""
        self._error = None
        self._schedule()

    # In

    def open(self) -> Deferred[None]:
        return succeed(None)

    def close(self) -> Deferred[None]:
        self._turn()
        return succeed(None)

    def draft(self) -> MemoryDraft:
        if self._error is not None:
            raise self._error
        spool_id = SpoolId(self._next_id)
        self._next_id += 1
        return MemoryDraft(spool_id, self._clock, self._pause_bytes)

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        return commit_deferred(self, submissions, settlements)

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        check_words(submissions, settlements, MAX_ENVELOPE_BYTES)
        if submissions:
            trouble, self._next_error = self._next_error or self._error, None
            if trouble is None and not all(_is_open(submission.draft) for submission in submissions):
                trouble = Unavailable("the draft is not one that can be committed")
            if trouble is not None:
                self._clock.callLater(0, listener.on_failed, (mark,), trouble)
                return
            for submission in submissions:
                draft = submission.draft
                assert isinstance(draft, MemoryDraft)
                draft.finish()
        together = [*settlements, *removals_of(ended)]
        for settlement in together:
            held, number = self._find(settlement.queue_id), settlement.queue_id.number
            if held is not None:
                held.settling[number] += 1
                held.go_out((number,))
        self._under_way.append(_Commit(tuple(submissions), together, listener, mark))
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled and self._under_way:
            self._is_scheduled = True
            self._clock.callLater(0, self._turn)

    def _turn(self) -> None:
        """Make one batch: the commits since the last one take effect."""
        self._is_scheduled = False
        batch, self._under_way = self._under_way, []
        if self._error is not None:
            # Submissions accepted before the failure count as written; only settlements alone must wait.
            self._under_way = [commit for commit in batch if not commit.submissions]
            batch = [commit for commit in batch if commit.submissions]
        changed: set[Area] = set()
        told: dict[CommitListener[Any], tuple[list[Any], list[Sequence[SpoolId]]]] = {}
        for commit in batch:
            for submission in commit.submissions:
                self._store(submission, changed)
            gone = [over for settlement in commit.settlements if (over := self._settle(settlement, changed)) is not None]
            marks, all_gone = told.setdefault(commit.listener, ([], []))
            marks.append(commit.mark)
            all_gone.append(gone)
        for listener, (marks, all_gone) in told.items():
            listener.on_durable(marks, all_gone)
        self._wake(changed)

    def _store(self, submission: Submission, changed: set[Area]) -> None:
        draft = submission.draft
        assert isinstance(draft, MemoryDraft)
        entries = entries_of(submission)
        if not entries:
            return
        content = draft.content
        held = StoredMessage(message_of(submission, len(content), []), content)
        insort(self._order, draft.spool_id)
        for entry in entries:
            held.entries[entry.number] = entry
            changed.add(entry.area)
        self._index.add(held, self._clock.seconds())

    def _settle(self, settlement: Settlement, changed: set[Area]) -> SpoolId | None:
        """Return the spool id of a message whose last entry this settled."""
        held, number = self._find(settlement.queue_id), settlement.queue_id.number
        if held is None:
            return None
        old = held.entries[number]
        held.settling[number] -= 1
        if settlement.area is not None:
            changed.add(settlement.area)
            self._index.replace(held, successor_of(old, settlement, settlement.area), self._clock.seconds())
            if held.settling[number]:
                held.go_out((number,))
        elif self._index.end(held, (number,)):
            spool_id = held.message.spool_id
            del self._order[bisect_left(self._order, spool_id)]
            return spool_id
        return None

    # Out

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        return succeed(self._index.take(area, limit, now, shares))

    def room_again(self) -> None:
        areas = self._index.room_again()
        if areas:
            self._clock.callLater(0, self._wake, areas)

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        free = []
        for queue_id in queue_ids:
            held = self._find(queue_id)
            if held is not None and not held.settling[queue_id.number]:
                free.append(queue_id)
        changed = self._index.give_back(free, not_before)
        if changed:
            self._clock.callLater(0, self._wake, changed)

    def ready(self, area: Area) -> Deferred[None]:
        due_at = self.next_due(area)
        if self._index.has_ready(area) or (due_at is not None and due_at <= self._clock.seconds()):
            return succeed(None)
        waiting: Deferred[None] = Deferred(self._waiting[area].remove)
        self._waiting[area].append(waiting)
        return waiting

    def next_due(self, area: Area) -> float | None:
        return self._index.next_due(area)

    def may_try(self, spool_id: SpoolId) -> bool:
        return True

    def withheld(self) -> str:
        return ""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        held = self._index.messages.get(spool_id)
        if held is None:
            return fail(Unavailable(f"no message {spool_id:016X}"))
        if len(held.content) <= self._large_bytes:
            return held.content
        return succeed(MemoryContent(held.content, self._clock))

    # Reading

    def counting_plan(self) -> None:
        return None

    def servers(self) -> None:
        return None

    def summary(self) -> Deferred[Summary]:
        return succeed(summarize(self._index.messages.values()))

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return succeed(find(self._index.messages, self._order, wanted, after, limit))

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        page = find(self._index.messages, self._order, wanted, after, limit)
        return succeed(claim_page(page, wanted, self._index))

    def hasten(self, latest: Latest, now: float) -> None:
        touched = self._index.hasten(latest, now, {})
        if touched:
            self._clock.callLater(0, self._wake, touched)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        count = 0
        for held in self._index.messages.values():
            if wanted.spool_id is not None and held.message.spool_id != wanted.spool_id:
                continue
            for number, entry in held.entries.items():
                if entry.area is not Area.DEFERRED or wanted.area not in (None, Area.DEFERRED) or number in held.out:
                    continue
                if wanted.matches(held.message, entry):
                    count += 1
                    self._index.make_due(held, entry, now)
        if count:
            self._clock.callLater(0, self._wake, {Area.DEFERRED})
        return succeed(Flushed(count))

    @property
    def max_envelope_bytes(self) -> int:
        return MAX_ENVELOPE_BYTES

    # Within

    def _find(self, queue_id: QueueId) -> StoredMessage | None:
        """Return the message of an existing entry."""
        held = self._index.messages.get(queue_id.spool_id)
        return held if held is not None and queue_id.number in held.entries else None

    def _wake(self, areas: set[Area]) -> None:
        for area in areas:
            waiting, self._waiting[area] = self._waiting[area], []
            for deferred in list(waiting):
                if not deferred.called:  # a waiter that fired before may have cancelled it
                    deferred.callback(None)


def _is_open(draft: IDraft) -> bool:
    return isinstance(draft, MemoryDraft) and draft.is_open
