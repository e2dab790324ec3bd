"""The other bounces of a message: who takes over one takes all, so that those of a round are one report.

The shares of a message's bounces are found by its index rows. They come into the hand together, without triggers of their
own: due rows bring those back that are left behind.

*Rule*: a server claims the oldest one first. Who has that has the round; others leave theirs to due rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.share import Share, ShareName, place_of, to_signed
from mailismus.queue.providers.distributed.format.tables import MAILS
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import HeldShare
from mailismus.queue.providers.distributed.hand.owning import Owned, Owning
from mailismus.queue.providers.distributed.hand.reading import Condition, FoundShare, read_share
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.rows import IRows, Row

MOST = 1000
"""Index rows that are looked at."""


@attrs.frozen
class Beside:
    """A share that was found and claimed; the hand has a use of it."""

    held: HeldShare
    found: FoundShare


class OtherBounces:
    """Finds them for one server."""

    def __init__(self, rows: IRows, hand: Hand, owning: Owning) -> None:
        self._rows, self._hand, self._owning = rows, hand, owning

    async def leads(self, name: ShareName) -> bool:
        """Whether the round of a bounce is this server's. False: another one has its oldest share. Raises `NotDone`."""
        found = await read_share(self._rows, name)
        if found.condition is not Condition.LIVES or found.share is None or found.share.message.recipient_count == 1:
            return True
        rows = await self._rows.rows(MAILS, (to_signed(found.share.message.spool_id),), None, MOST)
        first = min(_bounces_in(rows), key=lambda one: one.enqueue_id.int, default=name)
        if first.enqueue_id == name.enqueue_id:
            return True
        held = self._hand.share(first)
        try:
            return await self._owning.own(held) is not Owned.NOT
        finally:
            self._hand.end_use(held)

    async def of(self, share: Share, now: float) -> Sequence[Beside]:
        """Those of the same message that are due, by whatever clock, and free, if this share is a bounce."""
        message = share.message
        if share.area is not Area.BOUNCES or message.recipient_count == 1:
            return ()
        found: list[Beside] = []
        try:
            rows = await self._rows.rows(MAILS, (to_signed(message.spool_id),), None, MOST)
            for name in self._others(rows, share.name):
                held = self._hand.share(name)
                other = await self._claimed(held)
                if other is not None and other.share is not None and (other.share.was_due or other.share.due_at <= now):
                    found.append(Beside(held, other))
                    continue
                if other is not None:
                    held.learn(other.share, other.left, is_split=other.is_split)  # its claim is given up
                self._hand.end_use(held)
        except StoreFailure:
            return found  # they come by their due rows
        return found

    def _others(self, rows: Sequence[Row], own: ShareName) -> Iterator[ShareName]:
        for name in _bounces_in(rows):
            held = self._hand.shares.get(name.enqueue_id)
            if name.enqueue_id != own.enqueue_id and (held is None or not held.here):
                yield name

    async def _claimed(self, held: HeldShare) -> FoundShare | None:
        try:
            if await self._owning.own(held) is Owned.NOT:
                return None
            found = await read_share(self._rows, held.name)
        except StoreFailure:
            return None
        return found if found.condition is Condition.LIVES else None


def _bounces_in(rows: Sequence[Row]) -> Iterator[ShareName]:
    for row in rows:
        name = place_of(row)
        if name is not None and row["closed_at"] is None and name.place.queue_name == Area.BOUNCES.value:
            yield name
