"""The three stores as models, on one clock, with servers that have clients and fates of their own."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater

from mailismus.queue.providers.distributed.setup import set_up
from mailismus.queue.providers.distributed.stores.stores import Stores
from tests.distributed.models.broker import BrokerModel, ModelBroker
from tests.distributed.models.fates import Fates, IWatch
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


class EmptyWorld:
    """Three stores, in which nothing was made."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(START)
        self.broker, self.rows, self.objects = BrokerModel(self.clock), RowsModel(self.clock), ObjectsModel(self.clock)

    def server(self, clock: Clock | None = None, watch: IWatch | None = None) -> Server:
        """A server with clients of its own. `clock`: of its process; `watch`: sees its calls."""
        return Server(self.broker.client(clock, watch), self.rows.client(clock, watch), self.objects.client(clock, watch))

    def move_to(self, clock: Clock) -> None:
        """The stores' time goes on by another clock; clients that are made from now on follow it."""
        self.broker.clock = self.rows.clock = self.objects.clock = clock

    def pause(self, seconds: float) -> Deferred[None]:
        """Fires so many seconds later."""
        return deferLater(self.clock, seconds)

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


class World(EmptyWorld):
    """Three stores, set up."""

    def __init__(self) -> None:
        super().__init__()
        self.wait(set_up(self.server().stores))
