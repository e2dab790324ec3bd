"""Commits: each is carried out on its own, and those that end together are told together, in the order of their begin.

    drafts are finished -> contents, rows, triggers | settlements, message by message -> told

*Rules*: what a commit puts in is hidden until it is told. Shares of a commit that was refused stay hidden until they are
marked removed: parts of it may be there, or may come. A commit with messages and settlements is one batch, if it fits into
one. A report is refused where another server may have its bounces by now, or has ended one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.ids import QueueId, SpoolId, format_spool_id
from mailismus.queue.commits import error_of
from mailismus.queue.entering import removals_of
from mailismus.queue.interface import CommitListener, EndedEntries, M, Settlement, Submission
from mailismus.queue.providers.distributed.content.draft import DraftInMemory
from mailismus.queue.providers.distributed.content.kept import KeptContents
from mailismus.queue.providers.distributed.counts.keeping import CountKeeping
from mailismus.queue.providers.distributed.counts.numbers import entered as entered_of
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.enqueue.plan import Arrived
from mailismus.queue.providers.distributed.enqueue.steps import Enqueued, Enqueueing, EnqueueRefused
from mailismus.queue.providers.distributed.format.marks import WHOLE, note_of, removed_mark
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName
from mailismus.queue.providers.distributed.hand.arrived import ArrivedShares
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.loading import TriggerLoading
from mailismus.queue.providers.distributed.identity.spool_ids import ServerSpoolIds
from mailismus.queue.providers.distributed.settle.plan import SettleBatch
from mailismus.queue.providers.distributed.settle.settling import ShareSettling
from mailismus.queue.providers.distributed.stores.rows import Write
from mailismus.queue.providers.distributed.stores.together import together
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.queue.words import check_words

MAX_ENVELOPE_BYTES = 1 << 20
Settled = dict[SpoolId, dict[int, Settlement]]


@attrs.frozen(eq=False)
class _Commit:
    number: int
    listener: CommitListener[Any]
    mark: object
    drafts: Sequence[DraftInMemory]
    marked: Sequence[QueueId]
    """Entries whose pending settlements were counted."""


@attrs.frozen(eq=False)
class _Ended:
    commit: _Commit
    gone: Sequence[SpoolId] | None
    error: StorageError | None
    shown: Sequence[Share]


@attrs.frozen
class CommitParts:
    """What commits use."""

    reactor: IReactorTime
    now: Callable[[], float]
    view: Callable[[], ViewSettings]
    ids: ServerSpoolIds
    enqueueing: Enqueueing
    settling: ShareSettling
    firing: Firing
    hand: Hand
    loading: TriggerLoading
    kept: KeptContents
    arrived: ArrivedShares
    counts: CountKeeping
    may_try: Callable[[SpoolId], bool]
    """Whether what is here of a message may be tried."""


class Commits:
    """Commits of one server."""

    _log = Logger()

    def __init__(self, parts: CommitParts) -> None:
        self._parts = parts
        self._last = 0
        self._under_way = 0
        self._ended: deque[_Ended] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way and not self._ended

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        """As `IQueue.begin_commit`."""
        check_words(submissions, settlements, MAX_ENVELOPE_BYTES)
        settled: Settled = {}
        for settlement in (*settlements, *removals_of(ended)):
            spool_id, number = settlement.queue_id
            settled.setdefault(spool_id, {})[number] = settlement
        drafts = [draft for one in submissions if isinstance(draft := one.draft, DraftInMemory)]
        is_good = len(drafts) == len(submissions) and all(draft.is_open and not draft.is_cut for draft in drafts)
        commit = _Commit(self._last, listener, mark, drafts, () if not is_good else self._mark(settled))
        self._last += 1
        for draft in drafts:
            draft.finish()
        self._under_way += 1
        if is_good and submissions and not self._may_end(settled):
            self._end(_Ended(commit, None, Unavailable("another server may have what the message reports"), ()))
            return
        if not is_good:
            is_full = any(draft.is_cut for draft in drafts)
            error = Unavailable(
                "there is no room in memory for the message" if is_full else "no draft that can be committed"
            )
            self._end(_Ended(commit, None, error, ()))
            return
        run = self._enter(submissions, settled) if submissions else self._settle(settled)
        Deferred.fromCoroutine(run).addCallbacks(
            lambda done: self._end(_Ended(commit, done[0], None, done[1])),
            lambda failure: self._end(_Ended(commit, None, self._error_of(failure), ())),
        )

    def _mark(self, settled: Settled) -> list[QueueId]:
        """Count the pending settlements of entries that are here: they are out until the last has ended."""
        marked = []
        for spool_id, numbers in settled.items():
            known = self._parts.hand.index.messages.get(spool_id)
            for number in numbers:
                if known is not None and number in known.entries:
                    known.settling[number] += 1
                    known.go_out((number,))
                    marked.append(QueueId(spool_id, number))
        return marked

    async def _settle(self, settled: Settled) -> tuple[list[SpoolId], list[Share]]:
        settling = self._parts.settling
        are_over = await together(settling.settle(spool_id, numbers) for spool_id, numbers in settled.items())
        return [spool_id for spool_id, is_over in zip(settled, are_over, strict=True) if is_over], []

    async def _enter(self, submissions: Sequence[Submission], settled: Settled) -> tuple[list[SpoolId], list[Share]]:
        """Messages, and the settlements beside them, which come with the last message."""
        parts, gone = self._parts, []
        async with AsyncExitStack() as turns:
            batches: list[tuple[SpoolId, SettleBatch]] = []
            for spool_id in sorted(settled):
                await turns.enter_async_context(parts.settling.lock(spool_id))
                batches += [(spool_id, batch) for batch in await parts.settling.begin(spool_id, settled[spool_id])]
            if sum(len(batch.ended) for _, batch in batches) < sum(map(len, settled.values())):
                raise Unavailable("another server has ended some of what the message reports")
            for _, batch in batches:
                turns.enter_context(parts.settling.counting(batch))
            beside = [write for _, batch in batches for write in batch.writes]
            entered = await self._put_in(submissions, beside, settled)
            for spool_id, batch in batches:
                if await parts.settling.complete(spool_id, batch):
                    gone.append(spool_id)
        parts.firing.add([due for one in entered for due in (*one.due, *one.needless)])
        for needless in (due for one in entered for due in one.needless):
            parts.firing.forget(needless)
        self._refuse([share for one in entered for share in one.stale])
        for one in entered:
            parts.counts.apply(entered_of(one.plan.shares))
        return gone, [share for one in entered for share in one.plan.shares]

    async def _put_in(self, submissions: Sequence[Submission], beside: Sequence[Write], settled: Settled) -> list[Enqueued]:
        """Messages one after the other where settlements come with the last one, otherwise at the same time. Where one is
        refused all are."""
        *first, last = submissions
        results: list[Enqueued | EnqueueRefused] = []
        if beside:
            for one in first:
                results.append(await self._try(one, ()))
            if not any(isinstance(result, EnqueueRefused) for result in results):
                results.append(await self._try(last, beside, lambda: self._may_end(settled)))
        else:
            results = await together(self._try(one, ()) for one in submissions)
        refusals = [result for result in results if isinstance(result, EnqueueRefused)]
        entered = [result for result in results if isinstance(result, Enqueued)]
        if refusals:
            told = [share.name for refusal in refusals for share in refusal.told]
            self._refuse([share for refusal in refusals for share in refusal.unsure], told)
            told = [share.name for one in entered for share in one.plan.shares]
            self._refuse([share for one in entered for share in (*one.plan.shares, *one.stale)], told)
            failure = refusals[0].failure
            raise Unavailable(str(failure), failure.is_full)
        return entered

    def _may_end(self, settled: Settled) -> bool:
        """Whether no other server may have what these settlements end."""
        return all(map(self._parts.may_try, settled))

    async def _try(
        self, submission: Submission, beside: Sequence[Write], may_end: Callable[[], bool] = lambda: True
    ) -> Enqueued | EnqueueRefused:
        draft, parts = submission.draft, self._parts
        assert isinstance(draft, DraftInMemory)
        envelope = submission.envelope
        key = f"mail/{int(parts.now() // 86_400)}/{format_spool_id(draft.spool_id).lower()}"
        arrived = Arrived(
            draft.spool_id,
            envelope,
            submission.received_at,
            draft.stored_bytes - envelope.stuffed_dots,
            Blob(key, draft.sha256),
            submission.placements,
        )
        try:
            epoch_slice = parts.ids.slice_of(draft.spool_id)
            done = await parts.enqueueing.enqueue(arrived, draft, parts.view(), epoch_slice, beside, may_end)
        except EnqueueRefused as refused:
            return refused
        if done.plan.shares:
            parts.kept.keep(draft.spool_id, draft.content())
            parts.arrived.keep(publication.share for publication in done.plan.publications)
        return done

    def _refuse(self, shares: Sequence[Share], told: Collection[ShareName] = ()) -> None:
        """Mark shares removed; then they are not hidden any more. `told`: those of which other servers may have heard."""
        if shares:
            Deferred.fromCoroutine(self._remove(shares, told)).addErrback(
                lambda failure: self._log.failure("shares of refused mail can't be removed", failure)
            )

    async def _remove(self, shares: Sequence[Share], told: Collection[ShareName]) -> None:
        now = self._parts.now()
        for share in shares:
            note = note_of(share, now) if share.name in told else ()
            await self._parts.settling.write_surely([removed_mark(share.name, WHOLE, now), *note])
        self._show([share.name.enqueue_id for share in shares])

    def _show(self, names: Sequence[UUID]) -> None:
        """Shares are hidden no more."""
        self._parts.counts.show(names)
        self._parts.loading.show(names)

    @staticmethod
    def _error_of(failure: Failure) -> StorageError:
        if not isinstance(failure.value, StorageError):
            Commits._log.failure("a commit failed", failure)
        return error_of(failure)

    def _end(self, ended: _Ended) -> None:
        if not self._ended:
            self._parts.reactor.callLater(0, self._tell)
        self._ended.append(ended)

    def _tell(self) -> None:
        """Tell what has ended since the last turn."""
        told, self._ended = sorted(self._ended, key=lambda one: one.commit.number), deque()
        durable: dict[CommitListener[Any], list[_Ended]] = {}
        for ended in told:
            for draft in ended.commit.drafts:
                draft.end()
            self._unmark(ended.commit.marked)
            if ended.error is None:
                durable.setdefault(ended.commit.listener, []).append(ended)
        for listener, some in durable.items():
            listener.on_durable([one.commit.mark for one in some], [one.gone or () for one in some])
        for ended in told:
            if ended.error is not None:
                ended.commit.listener.on_failed((ended.commit.mark,), ended.error)
        self._show([share.name.enqueue_id for ended in told for share in ended.shown])
        self._under_way -= len(told)  # last: who closes the queue as it is told has all of it counted

    def _unmark(self, marked: Sequence[QueueId]) -> None:
        for queue_id in marked:
            known = self._parts.hand.index.messages.get(queue_id.spool_id)
            if known is not None and known.settling[queue_id.number] > 0:
                known.settling[queue_id.number] -= 1
