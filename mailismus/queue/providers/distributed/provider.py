"""The queue on a broker, a database and an object store, which several servers share.

    draft -> commit -> [content, rows, trigger] -> hand -> take -> settle -> [marks | a new share, its due row] -> ack

*Rules*: nothing is answered, taken or released before the stores have said that it is kept. What another server may have is
not begun. All code runs in the reactor's thread.

*Not here*: the wiring of the parts (`assembly`); how each of them works (the rooms).

Source: `docs/formats/distributed`, `docs/decisions/0037-several-servers-share-a-queue`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

import attrs
from twisted.internet import defer
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import StartError, Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import commit_deferred
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.gaps import ELSEWHERE
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
from mailismus.queue.providers.distributed.admission import Refused
from mailismus.queue.providers.distributed.browse.counting import count_by_rows
from mailismus.queue.providers.distributed.commits import MAX_ENVELOPE_BYTES
from mailismus.queue.providers.distributed.content.draft import DraftInMemory
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.hand.leaving import leave_all
from mailismus.queue.providers.distributed.identity.agreements import agree_on_places
from mailismus.queue.providers.distributed.identity.notes import known_servers
from mailismus.queue.providers.distributed.parts import DistributedParts
from mailismus.queue.providers.distributed.setup import are_queues_alone, missing_things, not_set_up
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.together import together
from mailismus.queue.servers import KnownServer

CLOSED = Refused("the queue is closed")
GIVE_UP_S = 5.0
"""Seconds that a close waits for stores that don't answer: entries settled meanwhile may be delivered twice."""
LOOK_S = 0.05
AGAIN_S = 5.0
"""Until it is tried again to hasten what waits."""

T = TypeVar("T")


class DistributedQueue:
    """`IQueue`."""

    _log = Logger()

    def __init__(self, parts: DistributedParts) -> None:
        self.parts = parts
        self._index = parts.hand.index
        self._waiting: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}
        self._is_open = False
        self.max_envelope_bytes = MAX_ENVELOPE_BYTES

    # opening and closing

    def open(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._open())

    async def _open(self) -> None:
        parts = self.parts
        try:
            missing = await missing_things(parts.stores)
            if not are_queues_alone(missing):
                raise not_set_up(missing)
            await agree_on_places(parts.stores)
            await parts.view.adopt()
            await parts.lease.serve(parts.ids.start)
            await parts.starts.load()
            await parts.firing.start()
            await parts.watching.start()
            await parts.counts.start()
        except StoreFailure as failure:
            raise StartError(os.EX_TEMPFAIL, f"the queue can't be opened: {failure}") from failure
        lease = parts.lease
        self._log.info("Serves the queue as {server}, epoch {epoch}.", server=lease.server, epoch=lease.epoch)
        parts.duties.start()
        parts.notes.start()
        parts.recounting.start()
        parts.carrying.start()
        parts.sweep.start()
        parts.sizes.start()
        parts.loading.start()
        self._is_open = True
        await together(consumer.start() for consumer in parts.consumers)

    def close(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._close())

    async def _close(self) -> None:
        parts = self.parts
        self._is_open = False
        end = parts.reactor.seconds() + GIVE_UP_S
        while not parts.commits.is_idle and parts.reactor.seconds() < end:
            await deferLater(parts.reactor, LOOK_S)
        if not parts.commits.is_idle:
            self._log.error("Closed while the stores don't answer; what was settled last may be tried again.")
        kept = parts.duties.close()
        parts.watching.close()
        parts.refilling.close()
        parts.looking.close()
        parts.owning.close()
        parts.firing.close()
        parts.loading.close()
        parts.ahead.close()
        parts.sizes.close()
        parts.recounting.close()
        parts.carrying.close()
        parts.sweep.close()
        await self._in_time(Deferred.fromCoroutine(parts.sharing.close()))
        await self._in_time(Deferred.fromCoroutine(parts.counts.close()))
        told = parts.notes.close()
        await self._in_time(kept)
        await parts.lease.release()
        await leave_all(parts.hand, parts.stores.broker)
        await together(consumer.stop() for consumer in parts.consumers)
        parts.probing.close()
        await self._in_time(told)
        await parts.stores.close()

    def _in_time(self, call: Deferred[None]) -> Deferred[None]:
        """It is not waited for longer than this: nothing depends on it."""
        return call.addTimeout(GIVE_UP_S, self.parts.reactor).addErrback(self._too_late)

    @staticmethod
    def _too_late(failure: Failure) -> None:
        failure.trap(defer.TimeoutError)  # type: ignore[no-untyped-call]  # Twisted's

    # in

    def refusal(self) -> str:
        """Why no mail is accepted now; empty: mail is accepted."""
        refused = self._refused()
        return "" if refused is None else refused.text

    def _refused(self) -> Refused | None:
        return self.parts.admission.refused() if self._is_open else CLOSED

    def draft(self) -> IDraft:
        parts, refused = self.parts, self._refused()
        if refused is not None:
            raise Unavailable(refused.text, refused.is_full)
        if parts.drafts.used >= parts.drafts.limit:
            raise Unavailable("there is no room in memory for another message")
        return DraftInMemory(parts.ids.next(), parts.drafts)

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
        self.parts.commits.begin_commit(submissions, settlements, ended, listener, mark)

    # out

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        if self.parts.admission.withheld():
            return succeed([])
        taken = self._index.take(area, limit, now, shares)
        self.parts.loading.go_on()
        return succeed(taken)

    def room_again(self) -> None:
        areas = self._index.room_again()
        if areas:
            self.parts.reactor.callLater(0, self.fire, areas)

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        free = []
        for queue_id in queue_ids:
            known = self._index.messages.get(queue_id.spool_id)
            if known is not None and not known.settling[queue_id.number]:
                free.append(queue_id)
        free = self.parts.hand.come_back(free)
        areas = self._index.give_back(free, not_before)
        if areas:
            self.parts.giving_back.leave(free, not_before)
            self.parts.reactor.callLater(0, self.fire, areas)

    def ready(self, area: Area) -> Deferred[None]:
        due_at = self._index.next_due(area)
        is_there = self._index.has_ready(area) or (due_at is not None and due_at <= self.parts.now())
        if is_there and not self.parts.admission.withheld():
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._waiting[area].pop(gone, None))
        self._waiting[area][waiting] = None
        return waiting

    def fire(self, areas: Collection[Area]) -> None:
        """Entries of these areas may be taken."""
        for area in areas:
            waiting, self._waiting[area] = self._waiting[area], {}
            for deferred in waiting:
                if not deferred.called:  # a waiter that fired before may have cancelled it
                    deferred.callback(None)

    def resume(self) -> None:
        """Entries may be handed out again."""
        if self._is_open and not self.parts.admission.withheld():
            self.parts.reactor.callLater(0, self.fire, tuple(Area))

    def next_due(self, area: Area) -> float | None:
        ready = self.parts.now() if self._index.has_ready(area) else None  # its row is not known to wait any more
        times = (ready, self._index.next_due(area), self.parts.firing.next_due(area))
        return min((at for at in times if at is not None), default=None)

    def may_try(self, spool_id: SpoolId) -> bool:
        parts = self.parts
        return not parts.admission.withheld() and parts.hand.may_try(spool_id, parts.elapsed())

    def withheld(self) -> str:
        return self.parts.admission.withheld()

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self.parts.contents.read(spool_id)

    # reading

    def summary(self) -> Deferred[Summary]:
        parts = self.parts
        return self._asked(count_by_rows(parts.stores.rows, parts.starts, parts.counts, self.refusal()))

    def counting_plan(self) -> None:
        return None

    def servers(self) -> Deferred[Sequence[KnownServer]]:
        return self._asked(known_servers(self.parts.stores.rows))

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return self._asked(self.parts.searching.search(wanted, after, limit)).addCallback(lambda found: found.page())

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return self._asked(self._claim(wanted, after, limit))

    async def _claim(self, wanted: Filter, after: object | None, limit: int) -> Page:
        hand = self.parts.hand
        found = await self.parts.searching.search(wanted, after, limit, is_whole=True)
        here = {one for message in found.messages for one in message.queue_ids() if hand.has(one)}
        shares = list(zip(found.shares, found.messages, strict=True))
        are_ours = await together(self._bring(living.share, message) for living, message in shares)
        ours = [message for message, is_ours in zip(found.messages, are_ours, strict=True) if is_ours is True]
        failures = [one for one in are_ours if isinstance(one, StoreFailure)]
        if failures:
            hand.put_back([one for message in ours for one in message.queue_ids() if one not in here])
            raise failures[0]
        others = [
            Gap("entry", ELSEWHERE, len(message.entries), f"{message.spool_id:016X}")
            for message, is_ours in zip(found.messages, are_ours, strict=True)
            if not is_ours
        ]
        page = found.page()
        page = attrs.evolve(page, messages=tuple(ours), gaps=(*page.gaps, *others))
        return claim_page(page, wanted, self._index)

    async def _bring(self, share: Share, message: Message) -> bool | StoreFailure:
        """Bring entries of a share into the hand. Return whether it is this server's, or why that is not known."""
        try:
            return await self.parts.settling.bring_ours(share, [entry.number for entry in message.entries])
        except StoreFailure as failure:
            return failure

    def hasten(self, latest: Latest, now: float) -> None:
        touched = self._index.hasten(latest, now, {})
        if touched:
            self.parts.reactor.callLater(0, self.fire, touched)
        Deferred.fromCoroutine(self._hasten(latest, now)).addErrback(
            lambda failure: self._log.failure("what waits could not be hastened", failure)
        )

    async def _hasten(self, latest: Latest, now: float) -> None:
        """Hasten what is in the stores, once they are well."""
        while self._is_open:
            try:
                await self.parts.hurrying.hasten(latest, now)
            except StoreFailure:
                await deferLater(self.parts.reactor, AGAIN_S)
            else:
                return

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        return self._asked(self.parts.hurrying.flush(wanted, now))

    def _asked(self, call: Coroutine[Deferred[Any], Any, T]) -> Deferred[T]:
        return Deferred.fromCoroutine(_in_our_words(call))


async def _in_our_words(call: Coroutine[Deferred[Any], Any, T]) -> T:
    try:
        return await call
    except StoreFailure as failure:
        raise Unavailable(str(failure)) from failure
