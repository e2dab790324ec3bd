"""Publishes and their confirms, on a channel of their own.

*Rules*: a publish is done when the broker has confirmed it. The broker returns what it can't put into a queue before it
confirms that; pika may blame another publish for it. So each message has a number, and the numbers of returned messages
decide. What waits for a confirm when the channel ends, or for longer than `CONFIRM_S`, is unanswered. A connection by which
nothing comes while a publish waits for its confirm is given up, for its node may be frozen: the next one is made elsewhere.

A channel whose first message for a queue came while the queue's leader was dead, and before there was a new one, is stuck:
RabbitMQ refuses all that comes by it for that queue until the dead node is back. By a new channel the same goes on a moment
later: so what is refused is published again by another one (some nodes may have it, or none). While a leader is frozen no
channel confirms anything until its node is taken for dead (`net_ticktime`); one that waited for that is left, too.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing, Unanswered, reason_of
from mailismus.queue.providers.distributed.stores.libraries import load
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import STORE, RabbitConnection, close_channel, within

CONFIRM_S = 10.0
REFUSED_PAUSE_S = 0.25
"""Behind a refusal. An election of RabbitMQ's takes about as long."""
REFUSED_S = 4.0
"""For so long from the first refusal on what is refused is published again."""


@attrs.frozen
class _Message:
    exchange: str
    queue: str
    body: bytes
    is_durable: bool


@attrs.define
class _Channel:
    """A channel of pika. One that is left stays open until nothing waits for its confirm there."""

    channel: Any
    waiting: int = 0
    is_left: bool = False
    returned: set[str] = attrs.field(factory=set)
    """Numbers of messages that no queue is there for, and that wait for their confirm."""

    def leave(self) -> None:
        """Publish nothing more by it."""
        self.is_left = True
        self._close()

    def confirmed(self) -> None:
        """One waits less."""
        self.waiting -= 1
        self._close()

    def _close(self) -> None:
        if self.is_left and not self.waiting:
            close_channel(self.channel)


@attrs.frozen
class _Sent:
    confirm: Deferred[Any]
    number: str
    channel: _Channel
    heard: int


class _Refused(Exception):
    """The broker does not take it over by this channel."""


class Confirming:
    """Publishes of one client."""

    def __init__(self, reactor: IReactorTime, connection: RabbitConnection) -> None:
        self._reactor, self._connection = reactor, connection
        self._line: deque[tuple[_Message, Deferred[_Sent]]] = deque()
        self._is_sending = False
        self._channel: _Channel | None = None
        self._exchanges: set[str] = set()
        self._last = 0

    async def publish(self, exchange: str, queue: str, body: bytes, *, is_durable: bool) -> None:
        """Publish, and wait for the confirm. `exchange` empty: to a queue by its name. Raises `NotDone` or `Unanswered`."""
        message, until = _Message(exchange, queue, body, is_durable), math.inf
        while True:
            try:
                return await self._publish(message)
            except _Refused as error:
                until = min(until, self._reactor.seconds() + REFUSED_S)
                if self._reactor.seconds() + REFUSED_PAUSE_S > until:
                    raise Unanswered(STORE, reason_of(error)) from error
            await deferLater(self._reactor, REFUSED_PAUSE_S)

    async def _publish(self, message: _Message) -> None:
        waiting: Deferred[_Sent] = Deferred()
        self._line.append((message, waiting))
        if not self._is_sending:
            self._is_sending = True
            Deferred.fromCoroutine(self._send_all())
        sent = await waiting
        try:
            await self._confirm(sent, message.queue)
        finally:
            sent.channel.confirmed()

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
            sent: Deferred[Any] = channel.channel.basic_publish(
                message.exchange, message.queue, message.body, properties, mandatory=message.is_durable
            )
        except Exception as error:
            raise NotDone(STORE, reason_of(error)) from error
        channel.waiting += 1
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
            self._leave(sent.channel)
            raise Unanswered(STORE, reason_of(error)) from error
        except exceptions.NackError as error:
            self._leave(sent.channel)
            raise _Refused(reason_of(error)) from error
        except Exception as error:
            raise Unanswered(STORE, reason_of(error)) from error
        if sent.number in sent.channel.returned:
            sent.channel.returned.discard(sent.number)
            raise QueueMissing(STORE, f"there is no queue {queue}")

    def _leave(self, channel: _Channel) -> None:
        if channel is self._channel:
            self._channel = None
        if not channel.is_left:
            channel.leave()

    async def _open_channel(self, exchange: str) -> _Channel:
        if self._channel is None or not self._channel.channel.is_open:
            self._channel = await self._new_channel()
        channel = self._channel
        if exchange and exchange not in self._exchanges:
            await declare_exchange(self._reactor, channel.channel, exchange)
            self._exchanges.add(exchange)
        return channel

    async def _new_channel(self) -> _Channel:
        channel = await self._connection.new_channel()
        self._exchanges.clear()
        try:
            await within(self._reactor, channel.confirm_delivery(), CONFIRM_S)
        except Exception as error:
            close_channel(channel)
            raise NotDone(STORE, reason_of(error)) from error
        made = _Channel(channel)
        channel.add_on_return_callback(lambda message: made.returned.add(message.properties.message_id))
        return made


async def declare_exchange(reactor: IReactorTime, channel: Any, name: str) -> None:
    """Make a fan-out exchange, if it is not there. Raises `NotDone`."""
    try:
        await within(reactor, channel.exchange_declare(name, "fanout", durable=True), CONFIRM_S)
    except Exception as error:
        raise NotDone(STORE, reason_of(error)) from error
