"""A server over the real services. Its time is a clock's, and passes as a test lets it; the services live in real time.

*Rules*: time passes only while no call is under way, and nothing is left that the broker has to deliver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, TypeVar, cast

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


class RealQueueHarness(ServerHarness):
    """Also `FailingHarness`, where its place can be cut off."""

    def __init__(self, place: RealPlace) -> None:
        clock = Clock()
        clock.advance(round(time.time(), 3))
        self._place = place
        self._own = Own(unique("test"), clock.seconds)
        self._wires: list[Wire] = []
        self._clients: list[RabbitBroker] = []
        self._broker: OwnBroker | None = None
        super().__init__(clock, time.time_ns())  # no two tests have ids in common

    def stores(self) -> Stores:
        wire, client = Wire(), self._place.broker()
        self._wires.append(wire)
        self._clients.append(client)
        self._broker = OwnBroker(self._own, wire, client, self._place.queues)
        return Stores(self._broker, OwnRows(self._own, wire, self._place.rows), OwnObjects(wire, self._place.objects))

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
        return sum(wire.under_way for wire in self._wires), {} if self._broker is None else self._broker.waits_for

    def crash_only(self) -> None:
        self.clock.calls.clear()
        for wire in self._wires:
            wire.cut()
        # What was under way is done or not; then the connection ends.
        turn_until(lambda: not any(wire.under_way for wire in self._wires))
        self._close_clients()

    def _close_clients(self) -> None:
        clients, self._clients, self._broker = self._clients, [], None
        for client in clients:
            wait_for(client.close())

    def break_down(self, queue: IQueue) -> None:
        assert self._place.cuts is not None
        self.settle()
        turn_for(FLUSHED_S)
        self._place.cuts.cut()
        turn_for(FLUSHED_S)

    def mend(self, queue: IQueue) -> None:
        self._place.mend()
        self.advance(LONGEST_PAUSE_S)  # it has consumers again
        self.settle()

    def close(self) -> None:
        self.crash_only()
        self._place.mend()


def a_harness(place: RealPlace) -> Iterator[RealQueueHarness]:
    """For a test's fixture. Skips the test where a service has ended."""
    place.check()
    harness = RealQueueHarness(place)
    yield harness
    harness.close()
