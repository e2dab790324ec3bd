"""The end of a consumer of RabbitMQ, whatever its connection says."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.broker import TriggerDelivery
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import CONNECT_S
from mailismus.queue.providers.distributed.stores.rabbitmq.consuming import RabbitConsumer


class Channel:
    """As one of pika, whose connection has just ended, or ends without a word."""

    is_open = True

    def __init__(self, error: Exception | None) -> None:
        self.on_closed: Deferred[None] = Deferred()
        self._error = error

    def close(self) -> None:
        if self._error is not None:
            raise self._error


class Receiver:
    def on_trigger(self, trigger: TriggerDelivery) -> None:
        pass

    def on_lost(self) -> None:
        pass


def test_a_consumer_ends_where_its_connection_has() -> None:
    """A channel of pika says that it is open, and fails as it is closed, until it has heard of the end of its connection."""
    told: list[object] = []
    consumer = RabbitConsumer(Clock(), Channel(RuntimeError("Attempted to send a frame on closed connection.")), Receiver())
    consumer.cancel().addBoth(told.append)
    assert told == [None]


def test_a_consumer_ends_without_an_answer() -> None:
    clock, told = Clock(), list[object]()
    RabbitConsumer(clock, Channel(None), Receiver()).cancel().addBoth(told.append)
    assert told == []
    clock.advance(CONNECT_S)
    assert told == [None]
