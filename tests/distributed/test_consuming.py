"""A consumer of RabbitMQ, over messages that a test makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from twisted.internet.defer import Deferred, DeferredQueue
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.broker import TriggerDelivery
from mailismus.queue.providers.distributed.stores.rabbitmq.consuming import RabbitConsumer
from tests.fakes.events import Events


class Receiver:
    """`TriggerReceiver` that breaks over one message."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        if trigger.body == b"bad":
            raise RuntimeError("broken")
        self.found.append(trigger.body)

    def on_lost(self) -> None:
        self.found.append(b"lost")


def test_a_receiver_that_breaks_over_a_message_is_told_of_the_next() -> None:
    receiver, messages = Receiver(), DeferredQueue[Any]()
    with Events() as events:
        Deferred.fromCoroutine(RabbitConsumer(cast(Any, Clock()), object(), receiver).run(messages))
        for tag, body in enumerate((b"one", b"bad", b"two")):
            messages.put(SimpleNamespace(body=body, method=SimpleNamespace(redelivered=False, delivery_tag=tag)))
    assert receiver.found == [b"one", b"two"]
    assert len(events) == 1
