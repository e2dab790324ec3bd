"""A server over the real services. Its time is a clock's, and passes as a test lets it; the services live in real time.

*Rules*: time passes only while no call is under way, and nothing is left that the broker has to deliver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.errors import StartError
from mailismus.queue.interface import IQueue
from mailismus.queue.providers.distributed.hand.consuming import LONGEST_PAUSE_S
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.stores import Stores
from tests.distributed.harness import ServerHarness
from tests.distributed.real.own import Own, OwnBroker, OwnObjects, OwnRows
from tests.distributed.real.place import RealPlace
from tests.distributed.real.wire import Wire
from tests.distributed.services import unique
from tests.distributed.waiting import PATIENCE_S, reactor, turn_for, turn_until, wait_for

T = TypeVar("T")
STEP_S = 0.1
STARTS = 3
"""Of a server that is told to try again: the machine of the services may be busy."""
FLUSHED_S = 0.05
"""What was written to a connection has arrived."""


@attrs.frozen
class Connected:
    """Clients of one server or command, and their calls."""

    wire: Wire
    client: RabbitBroker
    broker: OwnBroker
    stores: Stores


class RealQueueHarness(ServerHarness):
    """Also `FailingHarness`, where its place can be cut off."""

    def __init__(self, place: RealPlace) -> None:
        clock = Clock()
        clock.advance(round(time.time(), 3))
        self.place = place
        self.own = Own(unique("test"), clock.seconds)
        self._connected: list[Connected] = []
        super().__init__(clock, time.time_ns())  # no two tests have ids in common

    def stores(self) -> Stores:
        return self.connect().stores

    def connect(self) -> Connected:
        """Clients of a server, or of a command beside those that have ended."""
        place, own, wire, client = self.place, self.own, Wire(), self.place.broker()
        broker = OwnBroker(own, wire, client, place.queues)
        stores = Stores(broker, OwnRows(own, wire, place.rows), OwnObjects(own, wire, place.objects))
        self._connected.append(Connected(wire, client, broker, stores))
        return self._connected[-1]

    def disconnect(self, connected: Connected) -> None:
        """A command has ended."""
        self._connected.remove(connected)
        connected.wire.cut()
        wait_for(connected.client.close())

    def open(self, name: str = "mx") -> DistributedQueue:
        for _ in range(STARTS - 1):
            try:
                return super().open(name)
            except StartError:
                turn_for(1.0)
        return super().open(name)

    def wait(self, deferred: Deferred[T]) -> T:
        results: list[Any] = []
        deferred.addBoth(results.append)
        end = time.monotonic() + PATIENCE_S
        self.settle()
        while not results:
            assert time.monotonic() < end, f"no result within {PATIENCE_S:g} s"
            self.advance(STEP_S)
        self.settle()
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return cast(T, results[0])

    def settle(self) -> None:
        end = time.monotonic() + PATIENCE_S
        reactor.iterate(0)
        while not self._is_settled():
            assert time.monotonic() < end, f"not settled within {PATIENCE_S:g} s: {self._unsettled()}"
            if any(self._unsettled()):
                reactor.iterate(0.02)

    def _is_settled(self) -> bool:
        self.clock.advance(0)
        calls = self.clock.getDelayedCalls()
        is_due = any(call.getTime() <= self.clock.seconds() for call in calls)
        return not (is_due or any(self._unsettled()))

    def _unsettled(self) -> tuple[int, dict[str, int]]:
        """Calls under way, and messages of queues that are still to be delivered."""
        calls = sum(one.wire.under_way for one in self._connected)
        return calls, self._connected[-1].broker.waits_for if self._connected else {}

    def crash_only(self) -> None:
        self.clock.calls.clear()
        for one in self._connected:
            one.wire.cut()
        # What was under way is done or not; then the connection ends.
        turn_until(lambda: not any(one.wire.under_way for one in self._connected))
        connected, self._connected = self._connected, []
        for one in connected:
            wait_for(one.client.close())

    def break_down(self, queue: IQueue) -> None:
        assert self.place.cuts is not None
        self.settle()
        turn_for(FLUSHED_S)
        self.place.cuts.cut()
        turn_for(FLUSHED_S)

    def mend(self, queue: IQueue) -> None:
        self.place.mend()
        self.advance(LONGEST_PAUSE_S)  # it has consumers again
        self.settle()

    def close(self) -> None:
        self.crash_only()
        self.place.mend()


def a_harness(place: RealPlace) -> Iterator[RealQueueHarness]:
    """For a test's fixture. Skips the test where a service has ended."""
    place.check()
    harness = RealQueueHarness(place)
    yield harness
    harness.close()
