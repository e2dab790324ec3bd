"""Consumers of the broker's queues, one an area: begun, and begun anew when they are lost.

*Rule*: a queue is stuck that could not be consumed for `STUCK_S`, each time it was tried.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.tables import queue_of
from mailismus.queue.providers.distributed.hand.held import Delivered
from mailismus.queue.providers.distributed.stores.broker import IBroker, IConsumer, TriggerDelivery
from mailismus.queue.providers.distributed.stores.failure import QueueMissing, StoreFailure

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0
STUCK_S = 20.0


@attrs.frozen
class QueueTrouble:
    """Who is told that a queue is not there, or that one is stuck."""

    missing: Callable[[], None]
    stuck: Callable[[Area], None]


class AreaConsumer:
    """`TriggerReceiver` of one area's queue. `told`: of each message; `lost`: its consumer has ended."""

    _log = Logger()

    def __init__(
        self,
        broker: IBroker,
        area: Area,
        prefetch: int,
        reactor: IReactorTime,
        told: Callable[[bytes, Delivered], None],
        lost: Callable[[], None],
        trouble: QueueTrouble,
    ) -> None:
        self._trouble = trouble
        self._failing_since: float | None = None
        self._broker, self._area, self._prefetch, self._reactor = broker, area, prefetch, reactor
        self._told, self._lost = told, lost
        self._pause_s = FIRST_PAUSE_S
        self._receiver: _Receiver | None = None
        self.is_wanted = False

    def start(self) -> Deferred[None]:
        """Consume from now on. Fires when it was asked for, successful or not."""
        self.is_wanted = True
        return Deferred.fromCoroutine(self._consume())

    async def _consume(self) -> None:
        receiver = self._receiver = _Receiver(self._told, self._on_lost)
        try:
            consumer = await self._broker.consume(queue_of(self._area.value), self._prefetch, receiver)
        except StoreFailure as failure:
            self._log.warn("The triggers of {area} can't be consumed: {failure}", area=self._area.value, failure=failure)
            receiver.is_over = True
            self._later()
            self._note(failure)
            return
        self._pause_s, self._failing_since = FIRST_PAUSE_S, None
        if self.is_wanted and self._receiver is receiver:
            receiver.begin(consumer)
        else:
            receiver.is_over = True
            await consumer.cancel()

    def _note(self, failure: StoreFailure) -> None:
        """It could not be consumed."""
        if isinstance(failure, QueueMissing):
            self._failing_since = None
            self._trouble.missing()
            return
        now = self._reactor.seconds()
        if self._failing_since is None:
            self._failing_since = now
        elif now >= self._failing_since + STUCK_S:
            self._failing_since = None
            self._trouble.stuck(self._area)

    def hurry(self) -> None:
        """The broker is well again."""
        self._pause_s, self._failing_since = FIRST_PAUSE_S, None
        self._again()

    def _later(self) -> None:
        if self.is_wanted:
            self._reactor.callLater(self._pause_s, self._again)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _again(self) -> None:
        """Consume anew, unless that was begun meanwhile: of two consumers one would not be ended."""
        if self.is_wanted and (self._receiver is None or self._receiver.is_over):
            self.start()

    def _on_lost(self) -> None:
        self._lost()
        self._later()

    async def stop(self) -> None:
        """End it: what was not acked goes back."""
        self.is_wanted = False
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.is_over = True
            self._lost()
            if receiver.consumer is not None:
                await receiver.consumer.cancel()


class _Receiver:
    """One consumer's time. Messages may come before it is known."""

    def __init__(self, told: Callable[[bytes, Delivered], None], lost: Callable[[], None]) -> None:
        self._told, self._lost = told, lost
        self.consumer: IConsumer | None = None
        self._acks: list[TriggerDelivery] = []
        self.is_over = False

    def begin(self, consumer: IConsumer) -> None:
        """The consumer is there."""
        self.consumer = consumer
        for delivery in self._acks:
            consumer.ack(delivery)
        self._acks.clear()

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        if not self.is_over:
            self._told(trigger.body, _Delivery(self, trigger))

    def on_lost(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._lost()

    def ack(self, delivery: TriggerDelivery) -> None:
        """A message is over."""
        if self.is_over:
            return
        if self.consumer is None:
            self._acks.append(delivery)
        else:
            self.consumer.ack(delivery)


@attrs.frozen(eq=False)
class _Delivery:
    receiver: _Receiver
    delivery: TriggerDelivery

    @property
    def is_redelivered(self) -> bool:
        return self.delivery.is_redelivered

    @property
    def is_lost(self) -> bool:
        return self.receiver.is_over

    def ack(self) -> None:
        self.receiver.ack(self.delivery)
