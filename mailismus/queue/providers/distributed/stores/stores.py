"""The three stores of one queue, as what asks them knows them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows


@attrs.frozen
class Stores:
    """The clients of the three stores. `places`: where in them the queue is, by the setting that says so: all servers must
    have the same."""

    broker: IBroker
    rows: IRows
    objects: IObjects
    places: Mapping[str, str] = attrs.field(factory=dict)

    async def close(self) -> None:
        """End all connections."""
        await self.broker.close()
        await self.objects.close()
        await self.rows.close()
