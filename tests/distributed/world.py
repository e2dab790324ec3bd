"""The three stores as models, on one clock, with servers that have clients and fates of their own."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TABLES
from mailismus.queue.providers.distributed.setup import Stores
from tests.distributed.models.broker import BrokerModel, ModelBroker
from tests.distributed.models.fates import Fates
from tests.distributed.models.objects import ModelObjects, ObjectsModel
from tests.distributed.models.rows import ModelRows, RowsModel

T = TypeVar("T")
START = 1_790_000_000.0


@attrs.frozen
class Server:
    """Clients of one server."""

    broker: ModelBroker
    rows: ModelRows
    objects: ModelObjects

    @property
    def stores(self) -> Stores:
        return Stores(self.broker, self.rows, self.objects)

    @property
    def fates(self) -> tuple[Fates, Fates, Fates]:
        return self.objects.fates, self.rows.fates, self.broker.fates


class World:
    """Three stores, set up."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(START)
        self.broker, self.rows, self.objects = BrokerModel(self.clock), RowsModel(self.clock), ObjectsModel(self.clock)
        server = self.server()
        self.wait(server.rows.make(TABLES))
        self.wait(server.objects.make())
        self.wait(server.broker.declare((*QUEUES, DEAD)))

    def server(self) -> Server:
        """A server with clients of its own."""
        return Server(self.broker.client(), self.rows.client(), self.objects.client())

    def pause(self, seconds: float) -> Deferred[None]:
        """Fires so many seconds later."""
        done: Deferred[None] = Deferred()
        self.clock.callLater(seconds, done.callback, None)
        return done

    def wait(self, call: Deferred[T] | Coroutine[Deferred[Any], Any, T]) -> T:
        """Its result, or its failure raised."""
        deferred = call if isinstance(call, Deferred) else Deferred.fromCoroutine(call)
        results: list[T] = []
        errors: list[BaseException] = []
        deferred.addCallbacks(results.append, lambda failure: errors.append(failure.value))
        for _ in range(3000):
            if results or errors:
                break
            self.clock.advance(0.1)
        if errors:
            raise errors[0]
        return results[0]
