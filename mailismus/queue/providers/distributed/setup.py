"""Makes what a queue needs in its stores: tables, the bucket, queues of triggers; and tells what is missing.

*Rules*: an administrator has it made, once, by one command at a time: two that make tables at the same moment may break the
database's schema. A server makes nothing, and does not start where something is missing. Made again, everything is harmless.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TABLES
from mailismus.queue.providers.distributed.stores.stores import Stores

ALL_QUEUES = (*QUEUES, DEAD)


async def set_up(stores: Stores) -> list[str]:
    """Make what is missing, and return it, in words. Raises `NotDone`; what was made before that stays, and the next call
    goes on."""
    missing = await missing_things(stores)
    await stores.rows.make(TABLES)
    await stores.objects.make()
    await stores.broker.declare(ALL_QUEUES)
    return missing


async def missing_things(stores: Stores) -> list[str]:
    """What a server needs and is not there, in words. Raises `NotDone`."""
    missing = [f"table {name}" for name in await stores.rows.missing(TABLES)]
    missing += [] if await stores.objects.is_there() else ["the bucket"]
    return missing + [f"queue {name}" for name in await stores.broker.missing(ALL_QUEUES)]


def not_set_up(missing: Sequence[str]) -> StartError:
    """The refusal (78) of a queue that lacks this."""
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    text = f"not there: {', '.join(missing[:3])}{more}; make them once: mailismus queue setup"
    return StartError(os.EX_CONFIG, text, "mta/queue/@provider")
