"""`RabbitBroker`: the broker's interface over two connections.

What is published has one of its own, for a broker without room reads nothing more of it; acks go on by the other one.
Channels are apart: an error of one ends no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.providers.distributed.stores.broker import IConsumer, TriggerDelivery, TriggerReceiver
from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing, reason_of
from mailismus.queue.providers.distributed.stores.libraries import load, require_packages
from mailismus.queue.providers.distributed.stores.rabbitmq.confirming import Confirming, declare_exchange
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import (
    STORE,
    RabbitAccess,
    RabbitConnection,
    close_channel,
    within,
)
from mailismus.queue.providers.distributed.stores.rabbitmq.consuming import RabbitConsumer

ANSWER_S = 10.0
NOT_FOUND = 404
NO_LIMIT_SINCE = 4
"""RabbitMQ of this version has a limit of deliveries unless none is asked for; older ones know no word for none."""


class RabbitBroker:
    """`IBroker` by RabbitMQ."""

    def __init__(self, reactor: IReactorTime, access: RabbitAccess) -> None:
        """Raises `StartError` where pika is not installed."""
        require_packages()
        self._reactor = reactor
        self._connection = RabbitConnection(reactor, access)
        self._publishing = RabbitConnection(reactor, access)
        self._confirming = Confirming(reactor, self._publishing)
        self._consumers: list[RabbitConsumer] = []

    def declare(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        return Deferred.fromCoroutine(self._declare(queues))

    async def _declare(self, queues: Sequence[str]) -> Sequence[str]:
        made = []
        for queue in queues:
            if await self._look_at(queue) is None:
                await self._ask("queue_declare", queue, durable=True, arguments=await self._arguments())
                made.append(queue)
        return made

    async def _arguments(self) -> dict[str, object]:
        await self._connection.get()
        major = self._connection.version.partition(".")[0]
        has_limit = major.isdigit() and int(major) >= NO_LIMIT_SINCE
        return {"x-queue-type": "quorum", **({"x-delivery-limit": -1} if has_limit else {})}

    def missing(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        return Deferred.fromCoroutine(self._missing(queues))

    async def _missing(self, queues: Sequence[str]) -> Sequence[str]:
        return [queue for queue in queues if await self._look_at(queue) is None]

    def remove(self, queue: str) -> Deferred[None]:
        return Deferred.fromCoroutine(self._remove(queue))

    async def _remove(self, queue: str) -> None:
        await self._ask("queue_delete", queue)

    def publish(self, queue: str, body: bytes) -> Deferred[None]:
        return Deferred.fromCoroutine(self._confirming.publish("", queue, body, is_durable=True))

    def consume(self, queue: str, prefetch: int, receiver: TriggerReceiver) -> Deferred[IConsumer]:
        return Deferred.fromCoroutine(self._consume(queue, prefetch, receiver))

    async def _consume(self, queue: str, prefetch: int, receiver: TriggerReceiver) -> IConsumer:
        channel = await self._connection.new_channel()
        try:
            await within(self._reactor, channel.basic_qos(prefetch_count=prefetch), ANSWER_S)
            messages, _ = await within(self._reactor, channel.basic_consume(queue), ANSWER_S)
        except Exception as error:
            close_channel(channel)
            failure = QueueMissing if _is_not_found(error) else NotDone
            raise failure(STORE, f"can't consume {queue}: {reason_of(error)}") from error
        return self._begin(RabbitConsumer(self._reactor, channel, receiver), messages)

    def _begin(self, consumer: RabbitConsumer, messages: Any) -> RabbitConsumer:
        self._consumers.append(consumer)
        Deferred.fromCoroutine(consumer.run(messages)).addBoth(lambda _: self._consumers.remove(consumer))
        return consumer

    def depth(self, queue: str) -> Deferred[int]:
        return Deferred.fromCoroutine(self._depth(queue))

    async def _depth(self, queue: str) -> int:
        found = await self._look_at(queue)
        if found is None:
            raise QueueMissing(STORE, f"there is no queue {queue}")
        return found

    def tell(self, topic: str, body: bytes) -> Deferred[None]:
        return Deferred.fromCoroutine(self._confirming.publish(topic, "", body, is_durable=False))

    def listen(self, topic: str, on_news: Callable[[bytes], None], on_lost: Callable[[], None]) -> Deferred[None]:
        return Deferred.fromCoroutine(self._listen(topic, _Listener(on_news, on_lost)))

    async def _listen(self, topic: str, listener: TriggerReceiver) -> None:
        channel = await self._connection.new_channel()
        try:
            await declare_exchange(self._reactor, channel, topic)
            asked = channel.queue_declare("", exclusive=True, auto_delete=True)
            queue = (await within(self._reactor, asked, ANSWER_S)).method.queue
            await within(self._reactor, channel.queue_bind(queue, topic), ANSWER_S)
            messages, _ = await within(self._reactor, channel.basic_consume(queue, auto_ack=True), ANSWER_S)
        except Exception as error:
            close_channel(channel)
            raise NotDone(STORE, f"can't listen to {topic}: {reason_of(error)}") from error
        self._begin(RabbitConsumer(self._reactor, channel, listener), messages)

    def close(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._close())

    async def _close(self) -> None:
        for consumer in self._consumers:
            consumer.forget()
        for connection in (self._connection, self._publishing):
            try:
                await connection.close()
            except TimeoutError:
                connection.abort()

    def abort(self) -> None:
        """Cut the connections off. The next call connects anew."""
        self._connection.abort()
        self._publishing.abort()

    async def _look_at(self, queue: str) -> int | None:
        """How many messages wait there; None: there is no such queue. Raises `NotDone`."""
        channel = await self._connection.new_channel()
        try:
            found = await within(self._reactor, channel.queue_declare(queue, passive=True), ANSWER_S)
        except Exception as error:
            if _is_not_found(error):
                return None
            raise NotDone(STORE, reason_of(error)) from error
        finally:
            close_channel(channel)
        return int(found.method.message_count)

    async def _ask(self, method: str, *arguments: object, **options: object) -> Any:
        channel = await self._connection.new_channel()
        try:
            return await within(self._reactor, getattr(channel, method)(*arguments, **options), ANSWER_S)
        except Exception as error:
            raise NotDone(STORE, reason_of(error)) from error
        finally:
            close_channel(channel)


def _is_not_found(error: Exception) -> bool:
    return isinstance(error, load("pika", "exceptions").ChannelClosedByBroker) and error.args[0] == NOT_FOUND


@attrs.frozen
class _Listener:
    """`TriggerReceiver` of news."""

    on_news: Callable[[bytes], None]
    on_lost: Callable[[], None]

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        """News have come."""
        self.on_news(trigger.body)
