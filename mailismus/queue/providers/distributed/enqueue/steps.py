"""The steps of an enqueue, in their order; the next begins when the one before is durable.

    content -> rows -> trigger | due row -> done

| ended behind | what is there | what becomes of it |
|---|---|---|
| content | bytes that no row names | found by the sweep of contents |
| rows | shares without a trigger | `EnqueueRefused` names them: they are marked removed |
| trigger | all of it, not acknowledged | as behind the rows; after a crash a copy, if the client sends again |

*Rules*: what is not answered is asked again, the same, until `PATIENCE_S` are over; a call that is under way then is given
up, and what it may do yet is refused mail. Where the rows took longer than `LATE_S` since their slice was computed (the
server stood still), they are planned and written anew: a clean-up of that slice might have passed them. The broker is not
needed: in its place a due row has the share published later, and `FOR_ROW_S` are left for it.

What is written *beside* the rows comes by the same batch: a report's rows, and the end of its bounces. Then nothing is
refused once the batch may have been carried out: it is repeated until it is answered. Before that it is refused where a
server has stood still, or was cut off, and another one may have what is to end by now; behind it, where that one has ended
all of it: it has made a report of its own. A due row is in it too: a server that ends before the trigger is durable has
promised the report already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.enqueue.plan import Arrived, EnqueuePlan, Publication, plan_enqueue
from mailismus.queue.providers.distributed.format.batches import in_turn
from mailismus.queue.providers.distributed.format.due import DueKind, DueShare, due_row, due_share
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import DELETED
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.in_time import in_time
from mailismus.queue.providers.distributed.stores.objects import IBody
from mailismus.queue.providers.distributed.stores.rows import Put, Write
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.stores.together import together
from mailismus.queue.providers.distributed.view.change import ViewSettings

PATIENCE_S = 14.0
"""A client has its answer within 15 s of its final dot."""
FOR_ROW_S = 3.0
LATE_S = 60.0
PAUSE_S = 1.0
INSTEAD_S = 30.0
"""How long a report waits for the trigger of the server that made it, where that ends before."""
UNSURE_S = 10.0
"""How long a share waits for the broker that did not say whether it was told. Where it was surely not told, the share is due
at once."""


class EnqueueRefused(Exception):
    """It was not taken. `unsure`: shares of which rows may be there, or may come; they are to be marked removed. `told`:
    those among them whose rows are there, and triggers may be."""

    def __init__(self, failure: StoreFailure, unsure: Sequence[Share], told: Sequence[Share]) -> None:
        super().__init__(str(failure))
        self.failure, self.unsure, self.told = failure, tuple(unsure), tuple(told)


@attrs.frozen
class Enqueued:
    """It is durable. `stale`: shares of the same message that were written before, too late: they are to be marked
    removed, as `EnqueueRefused.unsure`. `due`: shares that are to be published at a time. `needless`: rows of shares whose
    triggers are durable, or that this server publishes before."""

    plan: EnqueuePlan
    stale: tuple[Share, ...]
    due: tuple[DueShare, ...]
    needless: tuple[DueShare, ...] = ()


@attrs.frozen
class EnqueueClock:
    """Times, and whose. `now`: UTC seconds; `elapsed`: seconds that never jump, and count the time that a machine sleeps;
    `pause`: fires so many seconds later; `epoch`: of this server's lease."""

    now: Callable[[], float]
    elapsed: Callable[[], float]
    pause: Callable[[float], Deferred[None]]
    epoch: Callable[[], int]


class Enqueueing:
    """Enqueues of one server. `begun` is told of shares before they are written."""

    def __init__(
        self, stores: Stores, clock: EnqueueClock, new_id: Callable[[], UUID], begun: Callable[[Sequence[Share]], None]
    ) -> None:
        self._stores, self._clock, self._new_id, self._begun = stores, clock, new_id, begun

    async def enqueue(
        self,
        arrived: Arrived,
        body: IBody,
        view: ViewSettings,
        epoch_slice: float,
        beside: Sequence[Write] = (),
        may_end: Callable[[], bool] = lambda: True,
    ) -> Enqueued:
        """Make it durable. `may_end`: asked when what comes beside is about to be written, whether it may. Raises
        `EnqueueRefused`."""
        clock = self._clock
        end = clock.elapsed() + PATIENCE_S
        unsure: list[Share] = []
        stale: list[Share] = []
        told: Sequence[Share] = ()
        try:
            await self._until_answered(lambda: self._stores.objects.put(arrived.blob.key, body), end)
            if not may_end():
                raise NotDone("rows", "another server may have what the message reports")
            while True:
                begun = clock.elapsed()
                heirs_in_s = INSTEAD_S if beside else None
                plan = plan_enqueue(arrived, view, epoch_slice, clock.now(), self._new_id, clock.epoch(), heirs_in_s)
                unsure += plan.shares
                self._begun(plan.shares)
                await self._write([*plan.writes, *beside], end, must_be_known=bool(beside))
                if clock.elapsed() - begun <= LATE_S:
                    break
                stale += plan.shares
                end = max(end, clock.elapsed() + PATIENCE_S)
            if beside and not may_end() and await self._has_another_ended(beside):
                raise NotDone("rows", "another server has reported it")
            told = plan.shares
            due, needless = list(plan.due), list[DueShare]()
            heirs = {heir.name: heir for heir in plan.heirs}
            for publication in plan.publications:
                heir = heirs.get(publication.share.name)
                instead = await self._publish(publication, heir, math.inf if beside else end)
                due += [] if instead is None else [instead]
                needless += [heir] if heir is not None and instead is not heir else []
        except StoreFailure as failure:
            raise EnqueueRefused(failure, unsure, told) from failure
        return Enqueued(plan, tuple(stale), tuple(due), tuple(needless))

    async def _has_another_ended(self, beside: Sequence[Write]) -> bool:
        """Whether all that comes beside has marks of another server, by their times: it has made its report by then."""
        marks = [write for write in beside if isinstance(write, Put) and write.table is DELETED]
        while True:
            try:
                found = await together(self._stores.rows.row(DELETED, mark.key) for mark in marks)
                break
            except NotDone:  # it may not be refused in doubt: the marks of this server are there
                await self._clock.pause(PAUSE_S)
        times = [(mark.cells.get("done_at"), row and row["done_at"]) for mark, row in zip(marks, found, strict=True)]
        return all(None not in (own, there) and own != there for own, there in times)

    async def _write(self, writes: Sequence[Write], end: float, *, must_be_known: bool) -> None:
        for batch in in_turn(writes):
            try:
                await self._in_time(self._stores.rows.write(batch), math.inf if must_be_known else end)
            except Unanswered:
                until = math.inf if must_be_known else end
                if self._clock.elapsed() + PAUSE_S >= until:
                    raise
                await self._until_answered(lambda batch=batch: self._stores.rows.write(batch), until)  # type: ignore[misc]
            except NotDone:
                if end != math.inf:
                    raise
                await self._until_answered(lambda batch=batch: self._stores.rows.write(batch), end)  # type: ignore[misc]
            end = math.inf if must_be_known else end  # a part of it is there, and the rest follows

    async def _publish(self, publication: Publication, heir: DueShare | None, end: float) -> DueShare | None:
        """Publish it, or have it published later: then when. `heir`: the row that it has already, for another server."""
        try:
            await self._in_time(self._stores.broker.publish(publication.queue, publication.body), end - FOR_ROW_S)
            return None
        except NotDone:
            in_s, kind = 0.0, DueKind.WAITS  # nobody was told, nor will be
        except Unanswered:
            if heir is not None:
                return heir
            in_s, kind = UNSURE_S, DueKind.INSTEAD
        now = self._clock.now()
        due = due_share(publication.share.name, now + in_s, now, self._clock.epoch(), kind)
        if heir is None:
            row = due_row(due, now)
            await self._until_answered(lambda: self._stores.rows.write([row]), end)
        return due

    async def _in_time(self, call: Deferred[None], end: float) -> None:
        """Wait for its answer until then. Raises as the call, or `Unanswered`."""
        if end != math.inf:
            call = in_time(call, self._clock.pause(max(0.0, end - self._clock.elapsed())))
        await call

    async def _until_answered(self, call: Callable[[], Deferred[None]], end: float) -> None:
        """Ask until it is answered, or `end` has come, with pauses: a store that can't be reached says so at once. Without
        an end a refusal is no answer either: a call before may be carried out yet."""
        while True:
            try:
                await self._in_time(call(), end)
            except Unanswered:
                if self._clock.elapsed() + PAUSE_S >= end:
                    raise
            except NotDone:
                if end != math.inf:
                    raise
            else:
                return
            await self._clock.pause(PAUSE_S)
