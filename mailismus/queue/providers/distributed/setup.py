"""Makes what a queue needs in its stores: tables, the bucket, queues of triggers; and tells what is missing.

*Rules*: an administrator has it made, once, by one command at a time: two that make tables at the same moment may break the
database's schema. A server makes no table and no bucket, and does not start where one is missing. Queues that are missing
beside tables were lost by the broker: they are made again and filled from the rows. Made again, everything is harmless.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.errors import StartError
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.tables import DEAD, ENQUEUED, QUEUES, TABLES, queue_of
from mailismus.queue.providers.distributed.identity.agreements import agree_on_places, refuse_other_places
from mailismus.queue.providers.distributed.identity.tasks import REFILL, want
from mailismus.queue.providers.distributed.stores.stores import Stores

ALL_QUEUES = (*QUEUES, DEAD)
_QUEUE = "queue "


async def set_up(stores: Stores) -> list[str]:
    """Make what is missing, and return it, in words. What was made before an error stays, and the next call goes on. Raises
    `NotDone`, and `StartError` (78) where servers of this queue use other places."""
    missing = await missing_things(stores)
    await stores.rows.make(TABLES)
    await refuse_other_places(stores)
    await stores.objects.make()
    await agree_on_places(stores)
    if f"table {ENQUEUED.name}" not in missing:
        for area in Area:
            if f"{_QUEUE}{queue_of(area.value)}" in missing:
                await want(stores.rows, REFILL + area.value)
    await stores.broker.declare(ALL_QUEUES)
    return missing


async def missing_things(stores: Stores) -> list[str]:
    """What a server needs and is not there, in words. Raises `NotDone`."""
    missing = [f"table {name}" for name in await stores.rows.missing(TABLES)]
    missing += [] if await stores.objects.is_there() else ["the bucket"]
    return missing + [_QUEUE + name for name in await stores.broker.missing(ALL_QUEUES)]


def are_queues_alone(missing: Sequence[str]) -> bool:
    """Whether nothing else is missing: the broker has lost them, or nothing is."""
    return all(name.startswith(_QUEUE) for name in missing)


def not_set_up(missing: Sequence[str]) -> StartError:
    """The refusal (78) of a queue that lacks this."""
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    text = f"not there: {', '.join(missing[:3])}{more}; make them once: mailismus queue setup"
    return StartError(os.EX_CONFIG, text, "mta/queue/@provider")
