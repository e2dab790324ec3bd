"""`queue setup`: asks the services to make what the queue needs, and waits for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.config.values.services import CassandraSettings, ServicesSettings
from mailismus.errors import StartError
from mailismus.queue.providers.distributed.clients import Clients
from mailismus.queue.providers.distributed.reaching import ReachedServices
from mailismus.queue.providers.distributed.setup import set_up
from mailismus.queue.providers.distributed.stores.failure import StoreFailure


class IKeyspaces(Protocol):
    """What is asked of the database before its tables. Each fails with `NotDone`."""

    def has_keyspace(self) -> Deferred[bool]:
        """Whether the keyspace is there."""

    def count_nodes(self) -> Deferred[int]:
        """How many nodes the datacenter has, up or not."""

    def make_keyspace(self, datacenter: str, replication: int) -> Deferred[None]:
        """Make it, if it is not there."""


def set_up_services(settings: ServicesSettings) -> Sequence[str]:
    """Make what is missing; what was made, in words. Blocks. Raises `StartError`: 69 where a service can't be reached or
    refuses."""
    reached = ReachedServices(settings)
    try:
        return reached.wait(_make(reached.clients, settings))
    finally:
        reached.close()


async def _make(clients: Clients, settings: ServicesSettings) -> Sequence[str]:
    try:
        return [*await make_keyspace(clients.rows, settings.cassandra), *await set_up(clients.stores)]
    except StoreFailure as failure:
        text = f"{failure}; what was made stays, and the next queue setup goes on"
        raise StartError(os.EX_UNAVAILABLE, text) from failure


async def make_keyspace(rows: IKeyspaces, settings: CassandraSettings) -> Sequence[str]:
    """Make it with copies of each row that the database has room for: with fewer nodes nothing could be read. Raises
    `StartError`: 78 where it has not so many nodes; `NotDone`."""
    if await rows.has_keyspace():
        return []
    nodes, replication = await rows.count_nodes(), settings.replication
    if nodes < replication:
        text = f"attribute replication of <cassandra> is {replication}: write at most {nodes}, as many as the database has"
        text += f" nodes in datacenter {settings.datacenter}"
        raise StartError(os.EX_CONFIG, text, "mta/queue/cassandra/@replication")
    await rows.make_keyspace(settings.datacenter, replication)
    return [f"keyspace {settings.keyspace}"]
