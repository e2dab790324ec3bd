"""The broker: durable queues of short messages, each handed to one consumer at a time.

    declare -> publish ... consume -> on_delivery ... ack
                                  \\-> on_lost: what was not acked is delivered again

A message is a trigger: it says that something is to be done, and may come twice. What is to be done is in the rows.

*Guaranteed*:
- A publish fires when the message is durable at a majority of the queue's nodes. Messages that were published to one queue
  by one client, one after the other, are delivered in that order, as long as none of them is delivered again.
- A message that was not acked is delivered again, to this consumer or another: when the consumer is cancelled, its channel
  or connection is lost, the client or the broker dies. Then `is_redelivered` is set.
- At most `prefetch` messages of a consumer are delivered and not acked.

*Not guaranteed*: that an ack arrives. It is not answered, and may be lost with the connection. That a publish which failed
with `Unanswered` has not arrived. That a message comes once.

Everything is called in the reactor's thread, and calls back there, never within the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred


@attrs.frozen
class TriggerDelivery:
    """One delivery of a message. `tag`: for the consumer that handed it out."""

    body: bytes
    is_redelivered: bool
    tag: int


class TriggerReceiver(Protocol):
    """Who consumes a queue."""

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        """A message was delivered. It is this consumer's until it is acked, or until `on_lost`."""

    def on_lost(self) -> None:
        """The consumer has ended, told once, and not after a `cancel`: all that it held is, or will be, delivered again.
        Consume anew."""


class IConsumer(Protocol):
    """A consumer of one queue. After `on_lost` and `cancel` calls do nothing: the triggers are no longer its own."""

    def ack(self, trigger: TriggerDelivery) -> None:
        """The message is over. Each trigger is acked once."""

    def cancel(self) -> Deferred[None]:
        """End it. What it held is delivered again."""


class IBroker(Protocol):
    """A client of the broker. It connects when it is asked for something, and connects anew behind a lost connection."""

    def declare(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        """Make the durable queues that are not there; gives those that were made. Made again, one is harmless. Fails with
        `NotDone`."""

    def missing(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        """Those that are not there. Fails with `NotDone`."""

    def remove(self, queue: str) -> Deferred[None]:
        """Remove a queue with its messages; harmless when it is not there. Fails with `NotDone`."""

    def publish(self, queue: str, body: bytes) -> Deferred[None]:
        """Fires when the message is durable. Fails with `NotDone`, with `QueueMissing` where there is no such queue, or with
        `Unanswered`."""

    def consume(self, queue: str, prefetch: int, receiver: TriggerReceiver) -> Deferred[IConsumer]:
        """Begin to consume. Messages may come before this fires. Fails with `NotDone`, `QueueMissing` where there is no such
        queue."""

    def depth(self, queue: str) -> Deferred[int]:
        """Messages that wait for a consumer, roughly; without those delivered and not acked. Fails with `NotDone`,
        `QueueMissing` where there is no such queue."""

    def tell(self, topic: str, body: bytes) -> Deferred[None]:
        """Tell everyone who listens now; nothing is kept for others. Fails with `NotDone` or `Unanswered`."""

    def listen(self, topic: str, on_news: Callable[[bytes], None], on_lost: Callable[[], None]) -> Deferred[None]:
        """Hear what is told from when this fires, one's own words too, until `on_lost`, which is told once. Fails with
        `NotDone`."""

    def close(self) -> Deferred[None]:
        """End all consumers and the connection. Receivers are told nothing."""
