"""What a suite needs of whoever brings a store."""

from __future__ import annotations

from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows

T = TypeVar("T")


class StoreHarness(Protocol):
    """A store under test, and the world around it."""

    def wait(self, deferred: Deferred[T]) -> T:
        """Run the world until it fires; its result, or its failure raised."""

    def pass_time(self, seconds: float) -> None:
        """So much time passes, for clients and the store."""

    def close(self) -> None:
        """The test is over."""


class BrokerHarness(StoreHarness, Protocol):
    """A broker."""

    def client(self) -> IBroker:
        """One more client of the same broker."""

    def name(self, name: str) -> str:
        """A name of a queue or topic that no other test uses. Queues of it are removed at the end."""

    def lose(self, client: IBroker) -> None:
        """The connection of this client is cut off."""


class RowsHarness(StoreHarness, Protocol):
    """A database."""

    def client(self) -> IRows:
        """One more client of the same empty keyspace."""


class ObjectsHarness(StoreHarness, Protocol):
    """An object store."""

    def client(self) -> IObjects:
        """One more client of the same bucket, which is not there yet."""
