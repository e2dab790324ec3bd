"""The steps of an enqueue, in their order; the next begins when the one before is durable.

    content -> rows -> trigger | due row -> done

| ended behind | what is there | what becomes of it |
|---|---|---|
| content | bytes that no row names | found by the sweep of contents |
| rows | shares without a trigger | `EnqueueRefused` names them: they are marked removed |
| trigger | all of it, not acknowledged | as behind the rows; after a crash a copy, if the client sends again |

*Rules*: what is not answered is asked again, the same, until `PATIENCE_S` are over. Where the rows took longer than
`LATE_S` since their slice was computed, they are planned and written anew: a clean-up of that slice might have passed them.
The broker is not needed: in its place a due row has the share published later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import attrs

from mailismus.queue.providers.distributed.enqueue.plan import Arrived, EnqueuePlan, Publication, due_row, plan_enqueue
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.setup import Stores
from mailismus.queue.providers.distributed.stores.failure import StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.objects import IBody
from mailismus.queue.providers.distributed.stores.rows import Write
from mailismus.queue.providers.distributed.view.change import ViewSettings

PATIENCE_S = 15.0
LATE_S = 60.0
INSTEAD_S = 30.0
"""How long a share waits for the broker that could not be told of it: no longer than the broker needs to forget a client."""


class EnqueueRefused(Exception):
    """It was not taken. `unsure`: shares of which rows may be there, or may come; they are to be marked removed."""

    def __init__(self, failure: StoreFailure, unsure: Sequence[Share]) -> None:
        super().__init__(str(failure))
        self.failure, self.unsure = failure, tuple(unsure)


@attrs.frozen
class Enqueued:
    """It is durable. `stale`: shares of the same message that were written before, too late: they are to be marked
    removed, as `EnqueueRefused.unsure`."""

    plan: EnqueuePlan
    stale: tuple[Share, ...]


@attrs.frozen
class EnqueueClock:
    """Times. `now`: UTC seconds; `elapsed`: seconds that never jump, and count the time that a machine sleeps."""

    now: Callable[[], float]
    elapsed: Callable[[], float]


class Enqueueing:
    """Enqueues of one server."""

    def __init__(self, stores: Stores, clock: EnqueueClock, new_id: Callable[[], UUID]) -> None:
        self._stores, self._clock, self._new_id = stores, clock, new_id

    async def enqueue(self, arrived: Arrived, body: IBody, view: ViewSettings, epoch_slice: float) -> Enqueued:
        """Make it durable. Raises `EnqueueRefused`."""
        end = self._clock.elapsed() + PATIENCE_S
        unsure: list[Share] = []
        stale: list[Share] = []
        try:
            await self._until_answered(lambda: self._stores.objects.put(arrived.blob.key, body), end)
            while True:
                begun = self._clock.elapsed()
                plan = plan_enqueue(arrived, view, epoch_slice, self._clock.now(), self._new_id)
                unsure += plan.shares
                await self._write(plan.writes, end)
                if self._clock.elapsed() - begun <= LATE_S:
                    break
                stale += plan.shares
            for publication in plan.publications:
                await self._publish(publication, end)
        except StoreFailure as failure:
            raise EnqueueRefused(failure, unsure) from failure
        return Enqueued(plan, tuple(stale))

    async def _write(self, writes: Sequence[Write], end: float) -> None:
        await self._until_answered(lambda: self._stores.rows.write(writes), end)

    async def _publish(self, publication: Publication, end: float) -> None:
        try:
            await self._stores.broker.publish(publication.queue, publication.body)
        except StoreFailure:
            now = self._clock.now()
            await self._write([due_row(publication.share, now + INSTEAD_S, now)], end)

    async def _until_answered(self, call: Callable[[], Awaitable[None]], end: float) -> None:
        while True:
            try:
                await call()
            except Unanswered:
                if self._clock.elapsed() >= end:
                    raise
                continue
            return
