"""The stores behind their circuits: a call of a store that is left alone fails at once, and each answer is noted.

*Rule*: a queue that can't be consumed says nothing about the broker: that one queue may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.circuits.circuit import Circuit
from mailismus.queue.providers.distributed.stores.broker import IBroker, IConsumer, TriggerReceiver
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.objects import IBody, IObject, IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Row, RowTable, Write
from mailismus.queue.providers.distributed.stores.stores import Stores

T = TypeVar("T")


@attrs.frozen
class Circuits:
    """A circuit for each store."""

    broker: Circuit
    rows: Circuit
    objects: Circuit

    @property
    def all(self) -> tuple[Circuit, Circuit, Circuit]:
        """All of them."""
        return self.broker, self.rows, self.objects

    def words(self) -> dict[str, str]:
        """The state of each, by the name of its store."""
        return {circuit.name: circuit.state.value for circuit in self.all}


def make_circuits(elapsed: Callable[[], float]) -> Circuits:
    """Circuits that are closed. Their names are those of the settings."""
    return Circuits(Circuit("rabbitmq", elapsed), Circuit("cassandra", elapsed), Circuit("objects", elapsed))


def guard(stores: Stores, circuits: Circuits) -> Stores:
    """The same stores behind circuits."""
    return Stores(
        GuardedBroker(stores.broker, _Guard(circuits.broker)),
        GuardedRows(stores.rows, _Guard(circuits.rows)),
        GuardedObjects(stores.objects, _Guard(circuits.objects)),
        stores.places,
    )


@attrs.frozen
class _Guard:
    circuit: Circuit

    def ask(self, begin: Callable[[], Deferred[T]], *, needs_room: bool = False) -> Deferred[T]:
        """Begin a call, unless the store is left alone."""
        refusal = self.circuit.refusal(needs_room=needs_room)
        if refusal is not None:
            return fail(refusal)
        return begin().addCallbacks(self._answered, self._failed)

    def _answered(self, result: T) -> T:
        self.circuit.answered()
        return result

    def _failed(self, failure: Failure) -> Any:
        if isinstance(failure.value, StoreFailure):
            self.circuit.failed(failure.value)
        return failure


class GuardedBroker:
    """`IBroker`."""

    def __init__(self, broker: IBroker, guard: _Guard) -> None:
        self._broker, self._guard = broker, guard

    def declare(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        return self._guard.ask(lambda: self._broker.declare(queues))

    def missing(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        return self._guard.ask(lambda: self._broker.missing(queues))

    def remove(self, queue: str) -> Deferred[None]:
        return self._guard.ask(lambda: self._broker.remove(queue))

    def publish(self, queue: str, body: bytes) -> Deferred[None]:
        return self._guard.ask(lambda: self._broker.publish(queue, body), needs_room=True)

    def consume(self, queue: str, prefetch: int, receiver: TriggerReceiver) -> Deferred[IConsumer]:
        refusal = self._guard.circuit.refusal(needs_room=False)
        return fail(refusal) if refusal is not None else self._broker.consume(queue, prefetch, receiver)

    def depth(self, queue: str) -> Deferred[int]:
        return self._guard.ask(lambda: self._broker.depth(queue))

    def tell(self, topic: str, body: bytes) -> Deferred[None]:
        return self._guard.ask(lambda: self._broker.tell(topic, body), needs_room=True)

    def listen(self, topic: str, on_news: Callable[[bytes], None], on_lost: Callable[[], None]) -> Deferred[None]:
        return self._guard.ask(lambda: self._broker.listen(topic, on_news, on_lost))

    def close(self) -> Deferred[None]:
        return self._broker.close()


class GuardedRows:
    """`IRows`."""

    def __init__(self, rows: IRows, guard: _Guard) -> None:
        self._rows, self._guard = rows, guard

    def make(self, tables: Sequence[RowTable]) -> Deferred[None]:
        return self._guard.ask(lambda: self._rows.make(tables))

    def missing(self, tables: Sequence[RowTable]) -> Deferred[Sequence[str]]:
        return self._guard.ask(lambda: self._rows.missing(tables))

    def write(self, writes: Sequence[Write]) -> Deferred[None]:
        return self._guard.ask(lambda: self._rows.write(writes), needs_room=True)

    def row(self, table: RowTable, key: Key) -> Deferred[Row | None]:
        return self._guard.ask(lambda: self._rows.row(table, key))

    def rows(self, table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        return self._guard.ask(lambda: self._rows.rows(table, partition, after, limit))

    def rows_under(self, table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
        return self._guard.ask(lambda: self._rows.rows_under(table, key, limit))

    def all_rows(self, table: RowTable) -> Deferred[Sequence[Row]]:
        return self._guard.ask(lambda: self._rows.all_rows(table))

    def add(self, table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        return self._guard.ask(lambda: self._rows.add(table, key, cells, ttl_s), needs_room=True)

    def change(self, table: RowTable, key: Key, cells: Row, found: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        return self._guard.ask(lambda: self._rows.change(table, key, cells, found, ttl_s), needs_room=True)

    def now(self) -> Deferred[float]:
        return self._guard.ask(self._rows.now)

    def close(self) -> Deferred[None]:
        return self._rows.close()


class GuardedObjects:
    """`IObjects`."""

    def __init__(self, objects: IObjects, guard: _Guard) -> None:
        self._objects, self._guard = objects, guard

    def make(self) -> Deferred[None]:
        return self._guard.ask(self._objects.make)

    def is_there(self) -> Deferred[bool]:
        return self._guard.ask(self._objects.is_there)

    def put(self, key: str, body: IBody) -> Deferred[None]:
        return self._guard.ask(lambda: self._objects.put(key, body), needs_room=True)

    def get(self, key: str) -> Deferred[IObject | None]:
        return self._guard.ask(lambda: self._objects.get(key))

    def remove(self, key: str) -> Deferred[None]:
        return self._guard.ask(lambda: self._objects.remove(key))

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Deferred[Sequence[str]]:
        return self._guard.ask(lambda: self._objects.keys(prefix, after, limit))

    def close(self) -> Deferred[None]:
        return self._objects.close()
