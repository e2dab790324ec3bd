"""New mail that nothing brings back: its server died between the rows and the trigger, or its queue was purged.

*Rules*: nothing was promised of the former, but rows that nobody ends stand in lists for ever, and hold the browse start.
One server looks, that with the lowest epoch; only where the broker's queue is empty, so that all triggers are in hands; only
at the oldest slice in which something lives, and at none of the last minutes: so it reads little. A share is published as a
suspect that is older than `OLD_S`, is not here, and that no server has claimed. What waits in a due row comes too early by
that, and is given back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import attrs

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import CLAIMS, queue_of
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.stores.stores import Stores

OLD_S = 300.0
"""Longer than a due row stands for a trigger, and than anything is in a hand without a claim."""
MOST = 100
"""Shares that are published by one look."""


class Forgotten:
    """Looks for it. `now`: UTC seconds."""

    def __init__(self, stores: Stores, hand: Hand, lease: ServerLease, starts: Starts, now: Callable[[], float]) -> None:
        self._stores, self._hand, self._lease, self._starts, self._now = stores, hand, lease, starts, now

    async def look(self) -> None:
        """Publish what is found. Raises `NotDone`, `Unanswered`."""
        queue = queue_of(Area.INCOMING.value)
        if not await self._lease.is_oldest() or await self._stores.broker.depth(queue):
            return
        async for share in self._oldest():
            if not await self._is_claimed(share):
                await self._stores.broker.publish(
                    queue, write_trigger(attrs.evolve(trigger_of(share.name), is_suspect=True))
                )

    async def _oldest(self) -> AsyncIterator[Share]:
        """Shares of the oldest slice in which any lives."""
        start, count, old_at = None, 0, self._now() - OLD_S
        async for living in self._starts.living(Area.INCOMING, old_at):
            share = living.share
            start = share.name.place.slice_start if start is None else start
            if share.name.place.slice_start != start or count == MOST:
                return
            if share.enqueued_at <= old_at and share.name.enqueue_id not in self._hand.shares:
                count += 1
                yield share

    async def _is_claimed(self, share: Share) -> bool:
        row = await self._stores.rows.row(CLAIMS, (share.name.enqueue_id,))
        owner = None if row is None else row["owner"]
        return isinstance(owner, int) and await self._lease.is_live(owner)
