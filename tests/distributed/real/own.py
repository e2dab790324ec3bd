"""Stores in which a test sees what is its own, and nothing else, beside other tests in the same tables and queues.

Texts of a partition's key, bodies of messages, and keys of objects begin with the test's own word. Numbers and ids need
none: epochs are given out to all tests by one row, so no two tests have an id in common, but for the one that says whether
all was ever counted. What a queue delivers of another
test is acked.

The database's clock goes on while a test's clock stands: times to live are `TTL_TIMES` as long.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

import attrs
from twisted.internet.defer import Deferred, succeed

from mailismus.queue.providers.distributed.counts.stored import RECOUNT
from mailismus.queue.providers.distributed.format.tables import COUNTING_SERVERS, DUE, SPIDS
from mailismus.queue.providers.distributed.stores.broker import IBroker, IConsumer, TriggerDelivery, TriggerReceiver
from mailismus.queue.providers.distributed.stores.objects import IBody, IObject, IObjects
from mailismus.queue.providers.distributed.stores.rows import Erase, IRows, Key, Put, Row, RowTable, Write
from tests.distributed.real.wire import Wire

RECOUNTED = (COUNTING_SERVERS.name, (RECOUNT,))
"""The row of no server."""
SHARED = frozenset({SPIDS.name})
"""Tables of all tests together."""
TTL_TIMES = 20
SPARSE = frozenset({DUE.name})
"""Tables of which a start looks at hundreds of partitions: those that a test has not written to are not asked for."""


@attrs.define
class Own:
    """What is known of one test. `now`: of its clock, which goes ahead of the database's."""

    word: str
    now: Callable[[], float]
    partitions: set[tuple[str, Key]] = attrs.field(factory=set)
    """That it has written to, or has begun to."""
    number: int = attrs.field(factory=lambda: -time.time_ns())
    """In place of `RECOUNT`."""
    told_at: float = 0.0
    """The last time that the database told."""
    owed: Counter[str] = attrs.field(factory=Counter)
    """Messages of each queue that were published and not acked."""

    def key(self, table: RowTable, key: Key) -> Key:
        """A key as it is written."""
        if (table.name, key) == RECOUNTED:
            return (self.number,)
        if table.name not in SHARED:
            begin = tuple(self._begin + value if isinstance(value, str) else value for value in key[: table.key_size])
            key = (*begin, *key[table.key_size :])
        return key

    def key_to_write(self, table: RowTable, key: Key) -> Key:
        """The same of one that is written to, from now on."""
        ours = self.key(table, key)
        self.partitions.add((table.name, ours[: table.key_size]))
        return ours

    def row(self, table: RowTable, row: Row) -> Row:
        """A row as its server wrote it."""
        if (table.name, row.get("epoch")) == (COUNTING_SERVERS.name, self.number):
            return {**row, "epoch": RECOUNT}
        if table.name in SHARED:
            return row
        names = {column.name for column in table.partition}
        return {
            name: value.removeprefix(self._begin) if name in names and isinstance(value, str) else value
            for name, value in row.items()
        }

    def is_own(self, table: RowTable, row: Row) -> bool:
        """Whether a row as it is written is of this test."""
        return (table.name, tuple(row[column.name] for column in table.partition)) in self.partitions

    def body(self, body: bytes) -> bytes:
        """The body of a message as it is published."""
        return self._begin.encode() + body

    def body_of(self, published: bytes) -> bytes | None:
        """That of a message that was published; None: another test's."""
        begin = self._begin.encode()
        return published[len(begin) :] if published.startswith(begin) else None

    def object_key(self, key: str) -> str:
        """The key of an object as it is stored."""
        return f"{self.word}/{key}"

    @property
    def _begin(self) -> str:
        return f"{self.word} "


class OwnRows:
    """`IRows`."""

    def __init__(self, own: Own, wire: Wire, rows: IRows) -> None:
        self._own, self._wire, self._rows = own, wire, rows

    def make(self, tables: Sequence[RowTable]) -> Deferred[None]:
        return self._wire.call(lambda: self._rows.make(tables))

    def missing(self, tables: Sequence[RowTable]) -> Deferred[Sequence[str]]:
        return self._wire.call(lambda: self._rows.missing(tables))

    def write(self, writes: Sequence[Write]) -> Deferred[None]:
        ours = [self._write(write) for write in writes]
        return self._wire.call(lambda: self._rows.write(ours))

    def _write(self, write: Write) -> Write:
        if isinstance(write, Put):
            key = self._own.key_to_write(write.table, write.key)
            return attrs.evolve(write, key=key, ttl_s=write.ttl_s * TTL_TIMES)
        return Erase(write.table, self._own.key(write.table, write.partition), write.at)

    def row(self, table: RowTable, key: Key) -> Deferred[Row | None]:
        ours = self._own.key(table, key)
        return self._wire.call(lambda: self._rows.row(table, ours)).addCallback(
            lambda row: None if row is None else self._own.row(table, row)
        )

    def rows(self, table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        ours = self._own.key(table, partition)
        if table.name in SPARSE and (table.name, ours) not in self._own.partitions:
            nothing: Deferred[Sequence[Row]] = succeed([])
            return self._wire.call(lambda: nothing)
        return self._wire.call(lambda: self._rows.rows(table, ours, after, limit)).addCallback(
            lambda rows: [self._own.row(table, row) for row in rows]
        )

    def rows_under(self, table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
        ours = self._own.key(table, key)
        return self._wire.call(lambda: self._rows.rows_under(table, ours, limit)).addCallback(
            lambda rows: [self._own.row(table, row) for row in rows]
        )

    def all_rows(self, table: RowTable) -> Deferred[Sequence[Row]]:
        return self._wire.call(lambda: self._rows.all_rows(table)).addCallback(
            lambda rows: [self._own.row(table, row) for row in rows if self._own.is_own(table, row)]
        )

    def add(self, table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        ours = self._own.key_to_write(table, key)
        return self._wire.call(lambda: self._rows.add(table, ours, cells, ttl_s * TTL_TIMES)).addCallback(
            lambda row: None if row is None else self._own.row(table, row)
        )

    def change(self, table: RowTable, key: Key, cells: Row, found: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        ours = self._own.key_to_write(table, key)
        return self._wire.call(lambda: self._rows.change(table, ours, cells, found, ttl_s * TTL_TIMES))

    def now(self) -> Deferred[float]:
        return self._wire.call(self._rows.now).addCallback(self._ascending)

    def _ascending(self, at: float) -> float:
        """Seconds of the test's clock, later at each call as the database's are, though that clock stands meanwhile."""
        own = self._own
        own.told_at = max(own.told_at + 0.001, at - time.time() + own.now())
        return own.told_at

    def close(self) -> Deferred[None]:
        """The client is of all tests."""
        return succeed(None)


class OwnBroker:
    """`IBroker`. `queues`: how the names of queues begin."""

    def __init__(self, own: Own, wire: Wire, broker: IBroker, queues: str) -> None:
        self._own, self._wire, self._broker, self._queues = own, wire, broker, queues
        self._receivers: dict[str, _OwnReceiver] = {}

    def declare(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        return self._wire.call(lambda: self._broker.declare(self._to(queues))).addCallback(self._from)

    def missing(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        return self._wire.call(lambda: self._broker.missing(self._to(queues))).addCallback(self._from)

    def remove(self, queue: str) -> Deferred[None]:
        return self._wire.call(lambda: self._broker.remove(self._queues + queue))

    def publish(self, queue: str, body: bytes) -> Deferred[None]:
        def note(_: None) -> None:
            self._own.owed[queue] += 1

        return self._wire.call(lambda: self._broker.publish(self._queues + queue, self._own.body(body)).addCallback(note))

    def consume(self, queue: str, prefetch: int, receiver: TriggerReceiver) -> Deferred[IConsumer]:
        ours = self._receivers[queue] = _OwnReceiver(self._own, self._wire, queue, prefetch, receiver)
        return self._wire.call(lambda: self._broker.consume(self._queues + queue, prefetch, ours).addCallback(ours.begin))

    def depth(self, queue: str) -> Deferred[int]:
        return self._wire.call(lambda: self._broker.depth(self._queues + queue))

    def tell(self, topic: str, body: bytes) -> Deferred[None]:
        return self._wire.call(lambda: self._broker.tell(self._queues + topic, self._own.body(body)))

    def listen(self, topic: str, on_news: Callable[[bytes], None], on_lost: Callable[[], None]) -> Deferred[None]:
        def hear(published: bytes) -> None:
            body = self._own.body_of(published)
            if body is not None:
                on_news(body)

        return self._wire.call(lambda: self._broker.listen(self._queues + topic, hear, on_lost))

    def close(self) -> Deferred[None]:
        return self._wire.call(self._broker.close)

    def _to(self, queues: Sequence[str]) -> list[str]:
        return [self._queues + queue for queue in queues]

    def _from(self, queues: Sequence[str]) -> Sequence[str]:
        return [queue.removeprefix(self._queues) for queue in queues]

    @property
    def waits_for(self) -> dict[str, int]:
        """How many messages of each queue that is consumed are still to be delivered."""
        still = {queue: self._own.owed[queue] - one.held for queue, one in self._receivers.items() if one.has_room}
        return {queue: count for queue, count in still.items() if count > 0}


class _OwnReceiver:
    """`TriggerReceiver` and `IConsumer`: between a queue of all tests and the receiver of one. A message may come before its
    consumer is known."""

    def __init__(self, own: Own, wire: Wire, queue: str, prefetch: int, receiver: TriggerReceiver) -> None:
        self._own, self._wire, self._queue, self._prefetch, self._receiver = own, wire, queue, prefetch, receiver
        self._consumer: IConsumer | None = None
        self._foreign: list[TriggerDelivery] = []
        self._is_over = False
        self.held = 0

    @property
    def has_room(self) -> bool:
        """Whether more may come."""
        return self._consumer is not None and not self._is_over and self.held < self._prefetch

    def begin(self, consumer: IConsumer) -> IConsumer:
        """The consumer is there."""
        self._consumer = consumer
        for trigger in self._foreign:
            consumer.ack(trigger)
        return self

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        body = self._own.body_of(trigger.body)
        if body is not None:
            self.held += 1
            self._receiver.on_trigger(attrs.evolve(trigger, body=body))
        elif self._consumer is None:
            self._foreign.append(trigger)
        else:
            self._consumer.ack(trigger)

    def on_lost(self) -> None:
        self._is_over = True
        self._receiver.on_lost()

    def ack(self, trigger: TriggerDelivery) -> None:
        assert self._consumer is not None
        if not self._is_over:
            self.held -= 1
            self._own.owed[self._queue] -= 1
        self._consumer.ack(trigger)

    def cancel(self) -> Deferred[None]:
        assert self._consumer is not None
        self._is_over = True
        return self._wire.call(self._consumer.cancel)


class OwnObjects:
    """`IObjects`."""

    def __init__(self, own: Own, wire: Wire, objects: IObjects) -> None:
        self._own, self._wire, self._objects = own, wire, objects

    def make(self) -> Deferred[None]:
        return self._wire.call(self._objects.make)

    def is_there(self) -> Deferred[bool]:
        return self._wire.call(self._objects.is_there)

    def put(self, key: str, body: IBody) -> Deferred[None]:
        return self._wire.call(lambda: self._objects.put(self._own.object_key(key), body))

    def get(self, key: str) -> Deferred[IObject | None]:
        return self._wire.call(lambda: self._objects.get(self._own.object_key(key))).addCallback(
            lambda found: None if found is None else _OwnObject(self._wire, found)
        )

    def remove(self, key: str) -> Deferred[None]:
        return self._wire.call(lambda: self._objects.remove(self._own.object_key(key)))

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Deferred[Sequence[str]]:
        begin = self._own.object_key("")
        behind = begin + after if after else ""
        return self._wire.call(lambda: self._objects.keys(begin + prefix, behind, limit)).addCallback(
            lambda keys: [key.removeprefix(begin) for key in keys]
        )

    def close(self) -> Deferred[None]:
        """The client is of all tests."""
        return succeed(None)


@attrs.frozen
class _OwnObject:
    """`IObject`."""

    _wire: Wire
    _found: IObject

    @property
    def size_bytes(self) -> int:
        return self._found.size_bytes

    def next(self) -> Deferred[bytes]:
        return self._wire.call(self._found.next)

    def close(self) -> None:
        self._found.close()
