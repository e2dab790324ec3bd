"""Publishes and their confirms, on a channel of their own.

*Rules*: a publish is done when the broker has confirmed it. The broker returns what it can't put into a queue before it
confirms that; pika may blame another publish for it. So each message has a number, and the numbers of returned messages
decide. What waits for a confirm when the channel ends, or for longer than `CONFIRM_S`, is unanswered; so is what the broker
could not take over: some of its nodes may have it. A connection by which nothing comes while a publish waits for its confirm
is given up, for its node may be frozen: the next one is made elsewhere.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing, Unanswered, reason_of
from mailismus.queue.providers.distributed.stores.libraries import load
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import STORE, RabbitConnection, close_channel, within

CONFIRM_S = 10.0


@attrs.frozen
class _Message:
    exchange: str
    queue: str
    body: bytes
    is_durable: bool


@attrs.frozen
class _Sent:
    confirm: Deferred[Any]
    number: str
    channel: Any
    heard: int


class Confirming:
    """Publishes of one client."""

    def __init__(self, reactor: IReactorTime, connection: RabbitConnection) -> None:
        self._reactor, self._connection = reactor, connection
        self._line: deque[tuple[_Message, Deferred[_Sent]]] = deque()
        self._is_sending = False
        self._channel: Any = None
        self._exchanges: set[str] = set()
        self._returned: set[str] = set()
        self._last = 0

    async def publish(self, exchange: str, queue: str, body: bytes, *, is_durable: bool) -> None:
        """Publish, and wait for the confirm. `exchange` empty: to a queue by its name. Raises `NotDone` or `Unanswered`."""
        waiting: Deferred[_Sent] = Deferred()
        self._line.append((_Message(exchange, queue, body, is_durable), waiting))
        if not self._is_sending:
            self._is_sending = True
            Deferred.fromCoroutine(self._send_all())
        await self._confirm(await waiting, queue)

    async def _send_all(self) -> None:
        """Send what is in line, in its order: also what came while the channel was being opened. Never fails."""
        while self._line:
            message, waiting = self._line.popleft()
            try:
                result = await self._send(message)
            except Exception as error:
                waiting.errback(error)
            else:
                waiting.callback(result)
        self._is_sending = False

    async def _send(self, message: _Message) -> _Sent:
        channel = await self._open_channel(message.exchange)
        if self._connection.is_blocked:
            raise NotDone(STORE, "it has no memory or no disk left", is_full=True)
        self._last += 1
        number = str(self._last)
        properties = load("pika").BasicProperties(delivery_mode=2 if message.is_durable else 1, message_id=number)
        try:
            sent: Deferred[Any] = channel.basic_publish(
                message.exchange, message.queue, message.body, properties, mandatory=message.is_durable
            )
        except Exception as error:
            raise NotDone(STORE, reason_of(error)) from error
        return _Sent(sent, number, channel, self._connection.heard)

    async def _confirm(self, sent: _Sent, queue: str) -> None:
        exceptions = load("pika", "exceptions")
        try:
            await within(self._reactor, sent.confirm, CONFIRM_S)
        except exceptions.UnroutableError:
            pass  # whose it was, `_returned` tells
        except TimeoutError as error:
            if sent.channel is self._channel:
                self._connection.give_up(sent.heard)
            raise Unanswered(STORE, reason_of(error)) from error
        except Exception as error:
            raise Unanswered(STORE, reason_of(error)) from error
        if sent.number in self._returned:
            self._returned.discard(sent.number)
            raise QueueMissing(STORE, f"there is no queue {queue}")

    async def _open_channel(self, exchange: str) -> Any:
        if self._channel is None or not self._channel.is_open:
            self._channel = await self._new_channel()
        if exchange and exchange not in self._exchanges:
            await declare_exchange(self._reactor, self._channel, exchange)
            self._exchanges.add(exchange)
        return self._channel

    async def _new_channel(self) -> Any:
        channel = await self._connection.new_channel()
        self._exchanges.clear()
        self._returned.clear()
        try:
            await within(self._reactor, channel.confirm_delivery(), CONFIRM_S)
        except Exception as error:
            close_channel(channel)
            raise NotDone(STORE, reason_of(error)) from error
        channel.add_on_return_callback(lambda message: self._returned.add(message.properties.message_id))
        return channel


async def declare_exchange(reactor: IReactorTime, channel: Any, name: str) -> None:
    """Make a fan-out exchange, if it is not there. Raises `NotDone`."""
    try:
        await within(reactor, channel.exchange_declare(name, "fanout", durable=True), CONFIRM_S)
    except Exception as error:
        raise NotDone(STORE, reason_of(error)) from error
