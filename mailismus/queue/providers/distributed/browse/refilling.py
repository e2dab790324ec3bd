"""A queue of the broker that was lost is made again and filled from the rows: triggers are published of all that lives.

    a queue is not there, or can't be consumed for long -> wanted -> made -> all shares published -> done

*Rules*: what is to be done is written down before the queue is made: a server that dies meanwhile has an heir. What another
server may have comes as a suspect, and claims decide. What is due later is left to its due row, unless one whose clock is
ahead may have published that: new mail has none. A bounce that was just made has its maker without a claim: it comes by
another due row. A queue that is there and can't be consumed, while the broker confirms other messages, is removed before:
RabbitMQ may lose the log of a queue, but not its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.circuits.circuit import Circuit
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.format.due import due_row, due_share
from mailismus.queue.providers.distributed.format.ids import CLOCKS_DIFFER_S
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import DEAD, PROBE_TOPIC, QUEUES, queue_of
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.held import TRUST_S
from mailismus.queue.providers.distributed.identity.tasks import REFILL, ServerTasks, want
from mailismus.queue.providers.distributed.settle.plan import HEIR_S, stays_with_maker
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.stores.together import together

AT_A_TIME = 64
"""Triggers that are published at once."""


class Refilling:
    """Refills by one server."""

    _log = Logger()

    def __init__(
        self,
        stores: Stores,
        circuit: Circuit,
        tasks: ServerTasks,
        starts: Starts,
        firing: Firing,
        now: Callable[[], float],
        epoch: Callable[[], int],
    ) -> None:
        """`circuit`: the broker's; `now`: UTC seconds; `epoch`: of this server's lease."""
        self._stores, self._circuit, self._tasks = stores, circuit, tasks
        self._starts, self._firing, self._now, self._epoch = starts, firing, now, epoch
        self._is_running = self._is_closed = False
        self._stuck: set[Area] = set()
        self.refilled = 0
        """Queues that were filled again since the start."""

    def close(self) -> None:
        """Begin no more."""
        self._is_closed = True

    def missing(self) -> None:
        """A queue is not there."""
        self.look()

    def stuck(self, area: Area) -> None:
        """The queue of an area can't be consumed for long."""
        if self._circuit.is_closed:
            self._stuck.add(area)
            self.look()

    def look(self) -> None:
        """Do what is to be done. Called each half minute, too."""
        if not (self._is_running or self._is_closed):
            self._is_running = True
            Deferred.fromCoroutine(self._look()).addErrback(self._failed).addBoth(self._ended)

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("queues of the broker can't be filled again", failure)

    def _ended(self, _: object) -> None:
        self._is_running = False

    async def _look(self) -> None:
        broker = self._stores.broker
        stuck, self._stuck = self._stuck, set()
        missing = set(await broker.missing((*QUEUES, DEAD)))
        for area in Area:
            if area in stuck:
                await self._remove(area)
            if area in stuck or queue_of(area.value) in missing:
                await want(self._stores.rows, REFILL + area.value)
        if DEAD in missing:
            await broker.declare([DEAD])
        for name in await self._tasks.open():
            wanted = _area_of(name)
            while wanted is not None and not self._is_closed and await self._tasks.begin(name):
                await self._refill(wanted)
                if await self._tasks.end(name):
                    break

    async def _remove(self, area: Area) -> None:
        """Remove a queue that can't be consumed. Raises `NotDone` or `Unanswered` where the broker is not well."""
        queue = queue_of(area.value)
        await self._stores.broker.tell(PROBE_TOPIC, b"")
        self._log.error("{queue} can't be consumed though the broker answers: it is removed.", queue=queue)
        await self._stores.broker.remove(queue)

    async def _refill(self, area: Area) -> None:
        queue = queue_of(area.value)
        self._log.warn("{queue} of the broker was lost, and is filled again from the database.", queue=queue)
        await self._stores.broker.declare([queue])
        count, some = 0, list[LivingShare]()
        async for living in self._starts.living(area, self._now() + CLOCKS_DIFFER_S):
            some.append(living)
            if len(some) == AT_A_TIME:
                count += await self._publish(some)
                some = []
        count += await self._publish(some)
        self.refilled += 1
        self._log.warn("{queue} of the broker is filled again: {count} triggers.", queue=queue, count=count)

    async def _publish(self, some: Sequence[LivingShare]) -> int:
        now = self._now()
        shares = [living.share for living in some if living.share.due_at <= now + CLOCKS_DIFFER_S]
        due = [share for share in shares if not _may_be_its_makers(share, now)]
        await self._wait([share for share in shares if _may_be_its_makers(share, now)], now)
        await together(
            self._stores.broker.publish(
                queue_of(share.name.place.queue_name),
                write_trigger(
                    attrs.evolve(
                        trigger_of(share.name),
                        is_suspect=share.area is Area.INCOMING,
                        is_from_row=share.area is not Area.INCOMING,
                    )
                ),
            )
            for share in due
        )
        return len(due)

    async def _wait(self, shares: Sequence[Share], now: float) -> None:
        due = [due_share(share.name, now + HEIR_S, now, self._epoch()) for share in shares]
        await together(self._stores.rows.write([due_row(one, now)]) for one in due)
        self._firing.add(due)


def _may_be_its_makers(share: Share, now: float) -> bool:
    """Whether the server that made a bounce may have it without a claim."""
    return stays_with_maker(share) and share.enqueued_at > now - TRUST_S - CLOCKS_DIFFER_S


def _area_of(name: str) -> Area | None:
    try:
        return Area(name.removeprefix(REFILL)) if name.startswith(REFILL) else None
    except ValueError:
        return None
