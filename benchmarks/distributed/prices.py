"""What single calls cost: our clients ask the services that are up, each call some hundred times, without any queue.

For the comparison with other ways to do it: a row that stands in the trigger too, a small content that stands in the row.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred

from benchmarks.distributed.services import Used
from benchmarks.queue_builder import content
from mailismus.disk.worker import ThreadPool
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.format.marks import WHOLE, done_mark, trigger_of
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace, writes_of
from mailismus.queue.providers.distributed.format.tables import CLAIMS, DELETED, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.reading import rows_of
from mailismus.queue.providers.distributed.stores.broker import IConsumer, TriggerDelivery
from mailismus.queue.providers.distributed.stores.cassandra.asking import RowsReactor
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess
from mailismus.queue.providers.distributed.stores.http.agent import HttpAgent
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import RabbitAccess
from mailismus.queue.providers.distributed.stores.rows import Write
from mailismus.queue.providers.distributed.stores.together import together
from tests.durability.harness.fleet.bed import facts_of_services
from tests.services.alone import only_one

CALLS, AT_ONCE = 250, 16
ROUNDS = 3
"""Of all calls; the first one does not count: services are slower at first."""
A_ROUND = 10_000
"""Numbers set aside for each."""
SMALL_BYTES = 4096
QUEUE = "mq.bench"
ROW_BYTES = 450
"""Of a share with one recipient, as JSON."""
WRITE_WITH, READ_WITH = "write a share with its content", "read a share with its content"
TRIGGER, TRIGGER_WITH = "trigger", "trigger with a row"


@attrs.frozen
class Price:
    """One call: milliseconds of a processor, ours and the service's."""

    call: str
    service: str
    ours_ms: float
    theirs_ms: float


class _Acking:
    """Acks all that comes; fires when so much has."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._waiting: list[TriggerDelivery] = []
        self._consumer: IConsumer | None = None
        self.done: Deferred[None] = Deferred()

    def begin(self, consumer: IConsumer) -> None:
        """It is there."""
        self._consumer = consumer
        for trigger in self._waiting:
            consumer.ack(trigger)

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        if self._consumer is None:
            self._waiting.append(trigger)
        else:
            self._consumer.ack(trigger)
        self._left -= 1
        if not self._left:
            self.done.callback(None)

    def on_lost(self) -> None:
        self.done.errback(RuntimeError("the consumer was lost"))


class _Prices:
    def __init__(self, reactor: Any) -> None:
        facts = facts_of_services()
        self.used, self._round = Used.now(), 0
        self._found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self._worker = ThreadPool(reactor, "cassandra", 1)
        self._worker.start()
        self._datacenter = facts["cassandra"]["datacenter"]
        name = f"prices_{os.getpid()}_{time.time_ns()}"
        login = facts["cassandra"]["username"], facts["cassandra"]["password"]
        access = CassandraAccess([_host(facts["cassandra"])], self._datacenter, *login)
        self.rows = CassandraRows(cast(RowsReactor, reactor), self._worker, access, name)
        swift, rabbitmq = facts["swift"], facts["rabbitmq"]
        key = SigningKey(swift["username"], swift["password"], swift["region"])
        dialect = S3Dialect(swift["url"], name.replace("_", "-"), key, time.time)
        self.objects = HttpObjects(HttpAgent(reactor, "s3", b""), dialect)
        broker = RabbitAccess([_host(rabbitmq)], rabbitmq["vhost"], rabbitmq["username"], rabbitmq["password"])
        self.broker = RabbitBroker(reactor, broker)

    async def open(self) -> None:
        """Make what is needed."""
        await self.rows.make_keyspace(self._datacenter, 1)
        await self.rows.make([ENQUEUED, DELETED, CLAIMS])
        await self.objects.make()
        await self.broker.remove(QUEUE)
        await self.broker.declare([QUEUE])

    def begin(self, number: int) -> None:
        """A round of all calls."""
        self._round = number

    async def close(self) -> None:
        """Remove it."""
        await self.broker.remove(QUEUE)
        await self.rows.remove_keyspace()
        await self.broker.close()
        await self.objects.close()
        await self.rows.close()
        self._worker.stop()

    async def take(self, call: str, service: str, ask: Callable[[int], Awaitable[object]]) -> None:
        """Measure one call, `AT_ONCE` at a time; the first ones of a round do not count."""
        first = self._round * A_ROUND
        await self._all(range(first, first + AT_ONCE), ask)
        ours_s, theirs_s = time.process_time(), self.used.cpu_s()[service]
        await self._all(range(first + AT_ONCE, first + AT_ONCE + CALLS), ask)
        ours_s, theirs_s = time.process_time() - ours_s, self.used.cpu_s()[service] - theirs_s
        if self._round:
            self._found.setdefault((call, service), []).append((1000 * ours_s / CALLS, 1000 * theirs_s / CALLS))

    def found(self) -> list[Price]:
        """Means of all rounds that count."""
        rounds = ROUNDS - 1
        return [
            Price(call, service, *(sum(values) / rounds for values in zip(*taken, strict=True)))
            for (call, service), taken in self._found.items()
        ]

    async def _all(self, numbers: range, ask: Callable[[int], Awaitable[object]]) -> None:
        left: Iterator[int] = iter(numbers)

        async def some() -> None:
            for number in left:
                await ask(number)

        await together(some() for _ in range(AT_ONCE))


def _host(facts: dict[str, str]) -> tuple[str, int]:
    host, _, port = facts["hosts"].rpartition(":")
    return host, int(port)


def share(number: int, data: bytes = b"") -> Share:
    """A message with one recipient, as it came in. `data`: stands in its row."""
    entry = Entry(1, b"r0.n%d@to.trial.example" % number, Area.INCOMING, 1.0)
    sender, client = b"s0.n%d@from.trial.example" % number, b"127.0.0.1"
    message = Message(SpoolId(number), sender, client, False, 1.0, SMALL_BYTES, 1, [entry], words=data or None)
    name = ShareName(SharePlace("incoming", 1.0 if data else 0.0, 0), UUID(int=number + 1))
    return Share(name, message, Blob(f"mail/20000/{number:x}", hashlib.sha256(b"%d" % number).digest()), 1.0, 1.0)


async def take_prices(reactor: Any) -> list[Price]:
    """Of all calls. Raises `StoreFailure`, `TrialError`."""
    with only_one():
        prices = _Prices(reactor)
        await prices.open()
        try:
            for number in range(ROUNDS):
                prices.begin(number)
                await _take_all(prices)
        finally:
            await prices.close()
        return prices.found()


async def _take_all(prices: _Prices) -> None:
    rows, objects = prices.rows, prices.objects
    large = content(1, SMALL_BYTES)

    async def get(number: int) -> None:
        found = await objects.get(f"mail/1/{number:x}")
        assert found is not None
        while await found.next():
            pass
        found.close()

    async def write(writes: list[Write]) -> None:
        await rows.write(writes)

    await prices.take("PUT", "swift", lambda number: objects.put(f"mail/1/{number:x}", WholeBody(large)))
    await prices.take("GET", "swift", get)
    await prices.take("DELETE", "swift", lambda number: objects.remove(f"mail/1/{number:x}"))
    await prices.take("write a share", "cassandra", lambda number: write([*writes_of(share(number), 1.0)]))
    await prices.take("read a share", "cassandra", lambda number: rows_of(rows, ENQUEUED, share(number).name))
    await prices.take("write a mark", "cassandra", lambda number: write([done_mark(share(number).name, WHOLE, 1.0)]))
    await prices.take("read marks", "cassandra", lambda number: rows_of(rows, DELETED, share(number).name))
    await prices.take("claim", "cassandra", lambda number: rows.add(CLAIMS, (UUID(int=number),), {"owner": 1}, 3600))
    await prices.take(WRITE_WITH, "cassandra", lambda number: write([*writes_of(share(number, large), 1.0)]))
    await prices.take(READ_WITH, "cassandra", lambda number: rows_of(rows, ENQUEUED, share(number, large).name))
    await _take_triggers(prices, TRIGGER, write_trigger(trigger_of(share(1).name)))
    await _take_triggers(prices, TRIGGER_WITH, write_trigger(trigger_of(share(1).name)) + b"x" * ROW_BYTES)


async def _take_triggers(prices: _Prices, call: str, body: bytes) -> None:
    receiver = _Acking(CALLS + AT_ONCE)
    broker = prices.broker
    consumer = await broker.consume(QUEUE, 1000, receiver)
    receiver.begin(consumer)

    async def publish(number: int) -> None:
        await broker.publish(QUEUE, body)
        if number % A_ROUND == CALLS + AT_ONCE - 1:
            await receiver.done

    await prices.take(call, "rabbitmq", publish)
    await consumer.cancel()
