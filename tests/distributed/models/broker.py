"""`BrokerModel`: the broker in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.broker import IConsumer, TriggerDelivery, TriggerReceiver
from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing
from tests.distributed.models.fates import Fates, IWatch

STORE = "broker"


@attrs.define
class _Message:
    body: bytes
    number: int
    is_redelivered: bool = False


@attrs.define
class _Queue:
    waiting: deque[_Message] = attrs.field(factory=deque)
    consumers: deque[ModelConsumer] = attrs.field(factory=deque)


class BrokerModel:
    """The broker. Messages go round among the consumers of a queue."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queues: dict[str, _Queue] = {}
        self.listeners: dict[str, list[_Listener]] = {}
        self.stuck: set[str] = set()
        """Queues that are there and can't be used, until they are removed."""
        self._last = 0

    def client(self, clock: Clock | None = None, watch: IWatch | None = None) -> ModelBroker:
        """A client of its own fates and its own connection. `clock`: of its process; `watch`: sees its calls."""
        return ModelBroker(self, clock or self.clock, watch)

    def queue(self, name: str) -> _Queue:
        """A queue. Raises `QueueMissing`."""
        if name not in self.queues:
            raise QueueMissing(STORE, f"there is no queue {name}")
        return self.queues[name]

    def add(self, name: str, body: bytes) -> None:
        """A message has come."""
        self._last += 1
        self.queue(name).waiting.append(_Message(body, self._last))
        self.hand_out(name)

    def give_back(self, name: str, messages: Sequence[_Message]) -> None:
        """Messages were not acked: they go back to their places."""
        if name in self.queues:
            for message in messages:
                message.is_redelivered = True
            waiting = sorted([*messages, *self.queues[name].waiting], key=lambda message: message.number)
            self.queues[name].waiting = deque(waiting)
            self.hand_out(name)

    def hand_out(self, name: str) -> None:
        """Deliver what consumers have room for, in a later turn."""
        self.clock.callLater(0.0, self._hand_out, name)

    def _hand_out(self, name: str) -> None:
        queue = self.queues.get(name)
        while queue is not None and queue.waiting:
            ready = next((consumer for consumer in queue.consumers if consumer.has_room), None)
            if ready is None:
                return
            queue.consumers.remove(ready)
            queue.consumers.append(ready)
            ready.deliver(queue.waiting.popleft())

    def wipe(self) -> None:
        """The broker has lost everything, and every client its connection."""
        consumers = [consumer for queue in self.queues.values() for consumer in queue.consumers]
        self.queues.clear()
        for consumer in consumers:
            consumer.lose()


class ModelConsumer:
    """`IConsumer` over the model."""

    def __init__(self, model: BrokerModel, clock: Clock, queue: str, prefetch: int, receiver: TriggerReceiver) -> None:
        self._model, self._queue, self._prefetch, self._receiver = model, queue, prefetch, receiver
        self._clock = clock
        self.held: dict[int, _Message] = {}
        self._last = 0
        self.is_over = False

    @property
    def has_room(self) -> bool:
        """Whether it may get one more."""
        return not self.is_over and len(self.held) < self._prefetch

    def deliver(self, message: _Message) -> None:
        """It gets a message."""
        self._last += 1
        self.held[self._last] = message
        delivery = TriggerDelivery(message.body, message.is_redelivered, self._last)
        self._clock.callLater(0.0, self._receiver.on_trigger, delivery)

    def ack(self, trigger: TriggerDelivery) -> None:
        if not self.is_over and self.held.pop(trigger.tag, None) is not None:
            self._model.hand_out(self._queue)

    def cancel(self) -> Deferred[None]:
        self.end()
        done: Deferred[None] = Deferred()
        self._clock.callLater(0.0, done.callback, None)
        return done

    def end(self) -> None:
        """Give everything back. The receiver is told nothing."""
        if self.is_over:
            return
        self.is_over = True
        queue = self._model.queues.get(self._queue)
        if queue is not None and self in queue.consumers:
            queue.consumers.remove(self)
        held, self.held = list(self.held.values()), {}
        self._model.give_back(self._queue, held)

    def lose(self) -> None:
        """The connection is lost."""
        if not self.is_over:
            self.end()
            self._clock.callLater(0.0, self._receiver.on_lost)


@attrs.define(eq=False)
class _Listener:
    clock: Clock
    """Of its process: one that stands still hears nothing."""
    on_news: Callable[[bytes], None]
    on_lost: Callable[[], None]


class ModelBroker:
    """`IBroker` over the model."""

    def __init__(self, model: BrokerModel, clock: Clock, watch: IWatch | None = None) -> None:
        self._model, self._clock = model, clock
        self._consumers: list[ModelConsumer] = []
        self._listening: list[tuple[str, _Listener]] = []
        self.fates = Fates(clock, STORE, watch)

    def declare(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        def act() -> Sequence[str]:
            made = [queue for queue in queues if queue not in self._model.queues]
            self._model.queues.update({queue: _Queue() for queue in made})
            return made

        return self.fates.carry_out("declare", act, is_reading=True)

    def missing(self, queues: Sequence[str]) -> Deferred[Sequence[str]]:
        def act() -> Sequence[str]:
            return [queue for queue in queues if queue not in self._model.queues]

        return self.fates.carry_out("missing", act, is_reading=True)

    def remove(self, queue: str) -> Deferred[None]:
        def act() -> None:
            self._model.stuck.discard(queue)
            for consumer in list(self._model.queues.pop(queue, _Queue()).consumers):
                consumer.lose()

        return self.fates.carry_out("remove", act, is_reading=True)

    def publish(self, queue: str, body: bytes) -> Deferred[None]:
        return self.fates.carry_out("publish", lambda: self._model.add(queue, body))

    def consume(self, queue: str, prefetch: int, receiver: TriggerReceiver) -> Deferred[IConsumer]:
        def act() -> IConsumer:
            if queue in self._model.stuck:
                raise NotDone(STORE, "the connection was closed")
            consumer = ModelConsumer(self._model, self._clock, queue, prefetch, receiver)
            self._model.queue(queue).consumers.append(consumer)
            self._consumers.append(consumer)
            self._model.hand_out(queue)
            return consumer

        return self.fates.carry_out("consume", act, is_reading=True)

    def depth(self, queue: str) -> Deferred[int]:
        return self.fates.carry_out("depth", lambda: len(self._model.queue(queue).waiting), is_reading=True)

    def tell(self, topic: str, body: bytes) -> Deferred[None]:
        def act() -> None:
            for listener in list(self._model.listeners.get(topic, ())):
                listener.clock.callLater(0.0, listener.on_news, body)

        return self.fates.carry_out("tell", act)

    def listen(self, topic: str, on_news: Callable[[bytes], None], on_lost: Callable[[], None]) -> Deferred[None]:
        def act() -> None:
            listener = _Listener(self._clock, on_news, on_lost)
            self._model.listeners.setdefault(topic, []).append(listener)
            self._listening.append((topic, listener))

        return self.fates.carry_out("listen", act, is_reading=True)

    def close(self) -> Deferred[None]:
        for consumer in self._consumers:
            consumer.end()
        self._forget_listeners()
        return succeed(None)

    def lose(self) -> None:
        """The connection is lost: consumers and listeners are told."""
        consumers, self._consumers = self._consumers, []
        for consumer in consumers:
            consumer.lose()
        for listener in self._forget_listeners():
            listener.on_lost()

    def _forget_listeners(self) -> list[_Listener]:
        forgotten, self._listening = self._listening, []
        for topic, listener in forgotten:
            self._model.listeners[topic].remove(listener)
        return [listener for _, listener in forgotten]
