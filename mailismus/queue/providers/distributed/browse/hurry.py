"""What waits is made due: by a flush, or because a clock was set back.

*Rules*: a trigger of it is published; its due row stays as it is, and does nothing when its time comes. What another server
may have without a claim, new mail and bounces that were just made, is not hastened before that one has claimed it: new mail
comes as a suspect, bounces `WAIT_S` later. A flush leaves alone what was surely put in after it began: what it made due is
tried and deferred again meanwhile, into slices that it comes to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Entry, Filter, Flushed, Gap, Latest
from mailismus.queue.providers.distributed.browse.overlay import entries_of
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.browse.search import Searching
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.format.due import DueKind, due_row, due_share
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import ShareName
from mailismus.queue.providers.distributed.format.tables import queue_of
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.waiting import WAIT_S
from mailismus.queue.providers.distributed.settle.plan import stays_with_maker
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.stores.together import together

AT_A_TIME = 64
"""Shares that are published at once."""


class Hurrying:
    """Flushes of one queue. `now`: UTC seconds; `epoch`: of this server's lease."""

    def __init__(
        self,
        stores: Stores,
        hand: Hand,
        starts: Starts,
        searching: Searching,
        firing: Firing,
        ids: ShareIds,
        now: Callable[[], float],
        epoch: Callable[[], int],
    ) -> None:
        self._stores, self._hand, self._starts, self._ids = stores, hand, starts, ids
        self._searching, self._firing, self._now, self._epoch = searching, firing, now, epoch

    async def flush(self, wanted: Filter, now: float) -> Flushed:
        """As `IQueue.visit_all`. Raises `NotDone`, `Unanswered`."""
        if wanted.area not in (None, Area.DEFERRED):
            return Flushed(0)
        count = 0
        gaps: list[Gap] = []
        away: list[tuple[ShareName, list[int]]] = []
        begun = self._ids()
        async for living in self._deferred(wanted, gaps):
            if self._ids.is_surely_after(living.share.name.enqueue_id, begun):
                continue
            entries = [entry for entry in entries_of(living, self._hand) if wanted.matches(living.share.message, entry)]
            elsewhere = self._make_due(living, entries, now)
            count += sum(not self._is_out(living, entry) for entry in entries)
            if elsewhere:
                away.append((living.share.name, elsewhere))
            if len(away) == AT_A_TIME:
                await self._publish_all(away)
                away.clear()
        await self._publish_all(away)
        return Flushed(count, tuple(gaps))

    def _is_out(self, living: LivingShare, entry: Entry) -> bool:
        return self._hand.is_out(QueueId(living.share.message.spool_id, entry.number))

    def _make_due(self, living: LivingShare, entries: Sequence[Entry], now: float) -> list[int]:
        """Make entries of a share due that are in the hand, and not out. Return the numbers of those that are elsewhere."""
        known = self._hand.index.messages.get(living.share.message.spool_id)
        elsewhere = []
        for entry in entries:
            if known is None or entry.number not in known.entries:
                elsewhere.append(entry.number)
            elif not self._is_out(living, entry):
                self._hand.index.make_due(known, entry, now)
                self._hand.tell({Area.DEFERRED})
        return elsewhere

    async def _publish_all(self, shares: Sequence[tuple[ShareName, Sequence[int]]]) -> None:
        await together(self._publish(name, numbers) for name, numbers in shares)

    async def _publish(self, name: ShareName, numbers: Sequence[int] | None) -> None:
        some = None if numbers is None else tuple(numbers)
        is_new = name.place.queue_name == Area.INCOMING.value
        trigger = attrs.evolve(trigger_of(name), numbers=some, is_suspect=is_new, is_from_row=not is_new)
        await self._stores.broker.publish(queue_of(name.place.queue_name), write_trigger(trigger))

    async def _deferred(self, wanted: Filter, gaps: list[Gap]) -> AsyncIterator[LivingShare]:
        if wanted.spool_id is not None:
            for living in await self._searching.shares_of(wanted.spool_id):
                if living.share.area is Area.DEFERRED:
                    yield living
            return
        async for living in self._starts.living(Area.DEFERRED, self._now(), gaps):
            yield living

    async def hasten(self, latest: Latest, now: float) -> None:
        """As `IQueue.hasten`, for what is not in the hand. Raises `NotDone`, `Unanswered`."""
        for area in Area:
            kept_until = now + WAIT_S if area is Area.BOUNCES else now
            for due in await self._firing.waiting(area):
                until = _hastened(latest, area, None, due.due_at)
                if due.kind is DueKind.GIVEN_BACK and until is not None:
                    await self._wait_until(due.name, kept_until, now)
            async for living in self._starts.living(area, self._now()):
                await self._hasten(living, area, latest, now)

    async def _hasten(self, living: LivingShare, area: Area, latest: Latest, now: float) -> None:
        held = self._hand.shares.get(living.share.name.enqueue_id)
        away = [entry for entry in living.entries if held is None or entry.number not in held.here]
        found = (_hastened(latest, area, one.attempts, one.due_at) for one in away)
        times = [until for until in found if until is not None]
        if times:
            first = now + WAIT_S if stays_with_maker(living.share) else now
            await self._wait_until(living.share.name, max(first, min(times)), now)

    async def _wait_until(self, name: ShareName, until: float, now: float) -> None:
        if until <= now:
            await self._publish(name, None)
            return
        kind = DueKind.INSTEAD if name.place.queue_name == Area.INCOMING.value else DueKind.WAITS
        due = due_share(name, until, now, self._epoch(), kind)
        await self._stores.rows.write([due_row(due, now)])
        self._firing.add([due])


def _hastened(latest: Latest, area: Area, attempts: int | None, due_at: float) -> float | None:
    """Until when something waits, if that is earlier than it was. Times are kept in milliseconds: what is asked about is the
    one below, so that a time that was written is not later than itself."""
    asked = due_at - 0.001
    until = latest(area, attempts, asked)
    return until if until < asked else None
