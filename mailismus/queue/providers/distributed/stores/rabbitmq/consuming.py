"""A consumer of one queue, on a channel of its own: its end gives everything back that it held.

*Rule*: a receiver that breaks over one message is told of the next ones all the same: else nothing of the queue would come
any more, and nobody would hear of it.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.providers.distributed.stores.broker import TriggerDelivery, TriggerReceiver
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import CONNECT_S, within


class RabbitConsumer:
    """`IConsumer` over a channel of pika."""

    _log = Logger()

    def __init__(self, reactor: IReactorTime, channel: Any, receiver: TriggerReceiver) -> None:
        self._reactor, self._channel, self._receiver = reactor, channel, receiver
        self._is_over = False

    def ack(self, trigger: TriggerDelivery) -> None:
        if not self._is_over and self._channel.is_open:
            self._channel.basic_ack(trigger.tag)

    def cancel(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._cancel())

    async def _cancel(self) -> None:
        self.forget()
        if self._channel.is_open:
            closed = self._channel.on_closed
            try:
                self._channel.close()
                await within(self._reactor, closed, CONNECT_S)
            except Exception:
                pass  # the connection ends, and gives everything back as well

    def forget(self) -> None:
        """Tell the receiver nothing more."""
        self._is_over = True

    async def run(self, messages: Any) -> None:
        """Tell of each message of pika's queue, until it ends. Never fails."""
        while True:
            try:
                message = await messages.get()
            except Exception:
                break
            if self._is_over:
                return
            method = message.method
            try:
                self._receiver.on_trigger(TriggerDelivery(message.body, method.redelivered, method.delivery_tag))
            except Exception:
                self._log.failure("a message of the broker can't be taken")
        if not self._is_over:
            self._is_over = True
            self._receiver.on_lost()
