"""A clean stop leaves what is in the hand to others at once: nobody waits for a lease, nor for what was delivered again.

*Rules*: called when nothing is begun any more and the lease is ended. Each trigger is acked behind another one that is
durable. That one may come back to this server before the broker confirms it: it is not acked, and so is delivered again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.tables import queue_of
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import HeldShare
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.together import together

AT_A_TIME = 64


async def leave_all(hand: Hand, broker: IBroker) -> None:
    """Publish what is in the hand, as long as the broker takes it: the rest is delivered again."""
    shares = list(_read_shares(hand))
    for at in range(0, len(shares), AT_A_TIME):
        if not all(await together(_leave(held, broker) for held in shares[at : at + AT_A_TIME])):
            return


def _read_shares(hand: Hand) -> Iterator[HeldShare]:
    for held in hand.shares.values():
        if held.here and (held.deliveries or held.heir is not None):
            yield held


async def _leave(held: HeldShare, broker: IBroker) -> bool:
    some: Sequence[int] | None = None if held.here == held.left else sorted(held.here)
    trigger = attrs.evolve(trigger_of(held.name), numbers=None if some is None else tuple(some), is_from_row=True)
    deliveries = held.take_deliveries()
    try:
        await broker.publish(queue_of(held.name.place.queue_name), write_trigger(trigger))
    except StoreFailure:
        return False
    for delivered in deliveries:
        delivered.ack()
    return True
