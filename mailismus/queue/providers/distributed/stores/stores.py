"""The three stores of one queue, as what asks them knows them."""

from __future__ import annotations

import attrs

from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows


@attrs.frozen
class Stores:
    """The clients of the three stores."""

    broker: IBroker
    rows: IRows
    objects: IObjects

    async def close(self) -> None:
        """End all connections."""
        await self.broker.close()
        await self.objects.close()
        await self.rows.close()
