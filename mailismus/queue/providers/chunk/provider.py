"""The one-file-a-message queue: each message a set of files, named by the number of an inode.

    draft -> commit -> [a batch, two barriers] -> S4 -> take -> settle -> [a batch] -> S5, or gone

*Rules*: nothing is answered, taken or released before the barriers of its batch have returned. All code here runs in the
reactor's thread; blocking calls run in a worker.

*Not here*: the wiring of the parts (`assembly`), what goes into a batch (`control.requests`), what it does (`write.batch`).

Source: `docs/formats/chunk`, `docs/decisions/0028-the-queue-of-chunks`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import commit_deferred
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.interface import (
    Area,
    CommitListener,
    EndedEntries,
    Filter,
    Flushed,
    Gap,
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
from mailismus.queue.providers.chunk.control.drafts import ChunkDraft
from mailismus.queue.providers.chunk.control.requests import MAX_ENVELOPE_BYTES
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.parts import ChunkParts
from mailismus.queue.providers.chunk.read.looking import LOOKED_AT

GIVE_UP_S = 5.0
"""Seconds that a close waits for files that can't be written: entries settled meanwhile may be delivered twice."""

READ_S = 0.05
"""Seconds after which a close looks again whether files are still being read."""


class ChunkQueue:
    """`IQueue`."""

    _log = Logger()

    def __init__(self, parts: ChunkParts) -> None:
        self.parts = parts
        self._index, self._resting = parts.ledger.index, parts.ledger.resting
        self._waiting: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}
        self._closing: Deferred[None] | None = None
        self.max_envelope_bytes = MAX_ENVELOPE_BYTES

    # opening and closing

    def open(self) -> Deferred[None]:
        parts = self.parts
        parts.space.start()
        parts.upkeep.start()
        parts.scanning.start(self._fire)
        parts.adoption.start()
        parts.due_times.start()
        return succeed(None)

    def close(self) -> Deferred[None]:
        parts = self.parts
        parts.admission.close()
        parts.upkeep.stop()
        parts.adoption.stop()
        parts.due_times.finish()
        parts.scanning.stop()
        parts.space.stop()
        closing = self._closing = Deferred()
        parts.work.hurry()
        parts.reactor.callLater(0, self._check_closed)
        parts.reactor.callLater(GIVE_UP_S, self._give_up)
        return closing.addCallback(lambda _: parts.opened.release())

    def _check_closed(self) -> None:
        if self._closing is None:
            return
        parts = self.parts
        if not all(one.is_idle for one in (parts.requests, parts.looking, parts.scanning, parts.due_times)):
            self.parts.reactor.callLater(READ_S, self._check_closed)
        elif self.parts.work.is_settled:
            closing, self._closing = self._closing, None
            closing.callback(None)

    def _give_up(self) -> None:
        if self._closing is None:
            return
        if not self.parts.work.is_waiting_for_retry:
            self.parts.reactor.callLater(GIVE_UP_S, self._give_up)
            return
        self._log.error("Closed while files can't be written; what was settled last may be tried again.")
        closing, self._closing = self._closing, None
        closing.callback(None)

    # in

    def draft(self) -> IDraft:
        parts = self.parts
        parts.admission.check()
        return ChunkDraft(parts.names.next(), parts.terms, parts.writers)

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        return commit_deferred(self.parts.requests, submissions, settlements)

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        self.parts.requests.begin_commit(submissions, settlements, ended, listener, mark)

    def on_batch(self, areas: Collection[Area]) -> None:
        """A batch has ended: tell who waits for it."""
        parts = self.parts
        parts.requests.tell()
        now = parts.now()
        self._fire(set(areas) | parts.work.came | {area for area in Area if parts.loading.is_due(area, now)})
        if self._closing is not None:
            parts.work.hurry()
            self._check_closed()

    # out

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        return self.parts.loading.take(area, limit, now, shares)

    def room_again(self) -> None:
        areas = self._index.room_again()
        areas |= self._resting.release({area: self._index.passed_over(area) for area in Area})
        if areas:
            self.parts.reactor.callLater(0, self._fire, areas)

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        free = [
            queue_id
            for queue_id in queue_ids
            if (known := self.parts.ledger.find(queue_id)) is not None and not known.settling[queue_id.number]
        ]
        changed = self._index.give_back(free, not_before)
        if changed:
            self.parts.reactor.callLater(0, self._fire, changed)

    def ready(self, area: Area) -> Deferred[None]:
        due_at, now = self._index.next_due(area), self.parts.now()
        if self._index.has_ready(area) or (due_at is not None and due_at <= now) or self.parts.loading.is_due(area, now):
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._waiting[area].pop(gone, None))
        self._waiting[area][waiting] = None
        return waiting

    def _fire(self, areas: Collection[Area]) -> None:
        for area in areas:
            waiting, self._waiting[area] = self._waiting[area], {}
            for deferred in waiting:
                if not deferred.called:  # a waiter that fired before may have cancelled it
                    deferred.callback(None)

    def next_due(self, area: Area) -> float | None:
        in_memory, resting = self._index.next_due(area), self._resting.next_due(area)
        if in_memory is None or resting is None:
            return resting if in_memory is None else in_memory
        return min(in_memory, resting)

    def may_try(self, spool_id: SpoolId) -> bool:
        return True

    def withheld(self) -> str:
        return ""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self.parts.contents.read(spool_id, self.parts.ledger.place_of(spool_id))

    # reading

    def summary(self) -> Deferred[Summary]:
        return Deferred.fromCoroutine(self._summarize())

    async def _summarize(self) -> Summary:
        parts = self.parts
        await parts.scanning.wait()
        return parts.looking.summarize(parts.scanning.gaps(), parts.admission.reason())

    def counting_plan(self) -> None:
        return None

    def servers(self) -> None:
        return None

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self._search(wanted, after, limit))

    async def _search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        gaps = await self._until_known(wanted)
        return await self.parts.looking.search(wanted, after, limit, gaps, LOOKED_AT)

    async def _until_known(self, wanted: Filter) -> tuple[Gap, ...]:
        """Wait until a start has read all that may match; a message is known with all of its entries, or not at all. Return
        what could not be read."""
        parts, spool_id = self.parts, wanted.spool_id
        if spool_id is not None and parts.ledger.has(spool_id):
            return ()
        await parts.scanning.wait()
        return parts.scanning.gaps()

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self._claim(wanted, after, limit))

    async def _claim(self, wanted: Filter, after: object | None, limit: int) -> Page:
        parts, read = self.parts, dict[SpoolId, KnownChunk]()
        gaps = await self._until_known(wanted)
        with self._resting.watch() as left:
            page = await parts.looking.search(wanted, after, limit, gaps, limit, read)
            parts.loading.enter(read, left)
        loading = parts.loading.bring({message.spool_id for message in page.messages})
        if loading is not None:
            await loading
        return claim_page(page, wanted, self._index)

    def hasten(self, latest: Latest, now: float) -> None:
        touched = self._index.hasten(latest, now, {}) | self._resting.hasten(latest)
        if touched:
            self.parts.reactor.callLater(0, self._fire, touched)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        return Deferred.fromCoroutine(self._flush(wanted, now))

    async def _flush(self, wanted: Filter, now: float) -> Flushed:
        gaps = await self._until_known(wanted)
        flushed, is_due = await self.parts.looking.flush(wanted, now, gaps)
        if is_due:
            self.parts.reactor.callLater(0, self._fire, {Area.DEFERRED})
        return flushed
