"""`queue setup`: asks the services, in a reactor of its own, to make what the queue needs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailismus.config.values.services import ServicesSettings
from mailismus.disk.worker import ThreadPool
from mailismus.errors import StartError
from mailismus.queue.providers.distributed.clients import Clients, make_clients
from mailismus.queue.providers.distributed.setup import set_up
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.reactor import QueueReactor


def set_up_services(settings: ServicesSettings) -> Sequence[str]:
    """Make what is missing; what was made, in words. Blocks. Raises `StartError`: 69 where a service can't be reached or
    refuses."""
    reactor = cast(QueueReactor, EPollReactor())  # type: ignore[no-untyped-call]  # Twisted has no annotation here
    threads = ThreadPool(reactor, "cassandra")
    clients = make_clients(settings, cast(IReactorTime, reactor), threads, time.time)
    ended: list[Sequence[str] | Failure] = []

    def begin() -> None:
        threads.start()
        Deferred.fromCoroutine(_make(clients, settings)).addBoth(end)

    def end(result: Sequence[str] | Failure) -> None:
        ended.append(result)
        reactor.stop()

    reactor.callWhenRunning(begin)
    reactor.run()
    threads.stop()
    match ended:
        case [Failure(value=StoreFailure() as error)]:
            raise StartError(os.EX_UNAVAILABLE, f"{error}; what was made stays, and the next queue setup goes on")
        case [Failure(value=error)] if error is not None:
            raise error
        case [Sequence() as made]:
            return made
    raise KeyboardInterrupt  # a signal stopped the reactor


async def _make(clients: Clients, settings: ServicesSettings) -> Sequence[str]:
    cassandra = settings.cassandra
    try:
        await clients.rows.make_keyspace(cassandra.datacenter, cassandra.replication)
        return await set_up(clients.stores)
    finally:
        await clients.stores.close()
