"""Makes what a queue needs in its stores: tables, the bucket, queues of triggers; and tells what is missing.

*Rules*: an administrator has it made, once, by one command at a time: two that make tables at the same moment may break the
database's schema. A server makes nothing, and does not start where something is missing. Made again, everything is harmless.
"""

from __future__ import annotations

from collections.abc import Awaitable

import attrs

from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TABLES
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows

ALL_QUEUES = (*QUEUES, DEAD)


@attrs.frozen
class Stores:
    """The clients of the three stores of one queue."""

    broker: IBroker
    rows: IRows
    objects: IObjects


@attrs.frozen
class MadeThings:
    """What was made, in words; what was there already is not named."""

    lines: tuple[str, ...]


async def set_up(stores: Stores) -> MadeThings:
    """Make what is missing. Raises `NotDone`; what was made before that stays, and the next call goes on."""
    missing = await missing_things(stores)
    await stores.rows.make(TABLES)
    await stores.objects.make()
    await stores.broker.declare(ALL_QUEUES)
    return MadeThings(missing)


async def missing_things(stores: Stores) -> tuple[str, ...]:
    """What a server needs and is not there, in words. Raises `NotDone`."""
    tables = await _named("table", stores.rows.missing(TABLES))
    bucket = [] if await stores.objects.is_there() else ["the bucket"]
    queues = await _named("queue", stores.broker.missing(ALL_QUEUES))
    return (*tables, *bucket, *queues)


async def _named(kind: str, names: Awaitable[object]) -> list[str]:
    found = await names
    assert isinstance(found, list | tuple)
    return [f"{kind} {name}" for name in found]
