"""`queue setup`: asks the services to make what the queue needs, and waits for them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.config.values.services import ServicesSettings
from mailismus.errors import StartError
from mailismus.queue.providers.distributed.clients import Clients
from mailismus.queue.providers.distributed.reaching import ReachedServices
from mailismus.queue.providers.distributed.setup import set_up
from mailismus.queue.providers.distributed.stores.failure import StoreFailure


def set_up_services(settings: ServicesSettings) -> Sequence[str]:
    """Make what is missing; what was made, in words. Blocks. Raises `StartError`: 69 where a service can't be reached or
    refuses."""
    reached = ReachedServices(settings)
    try:
        return reached.wait(_make(reached.clients, settings))
    finally:
        reached.close()


async def _make(clients: Clients, settings: ServicesSettings) -> Sequence[str]:
    cassandra = settings.cassandra
    try:
        await clients.rows.make_keyspace(cassandra.datacenter, cassandra.replication)
        return await set_up(clients.stores)
    except StoreFailure as failure:
        text = f"{failure}; what was made stays, and the next queue setup goes on"
        raise StartError(os.EX_UNAVAILABLE, text) from failure
