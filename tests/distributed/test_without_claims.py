"""Claims keep two servers from delivering the same. Where nothing is claimed, as in the fleet's control `no-claim`, what is
on the wire of one server for long is delivered by the other one too, as soon as that has a trigger of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.distributed.identity.claims import Claims
from tests.distributed.servers import ALL, Node, Servers
from tests.durability.harness.fleet.faulty import FAULTS

ON_THE_WIRE_S = 100.0
MESSAGES = 6


class Deliveries:
    """Two servers that deliver all that they get, `first` with a slow next hop: what it has begun takes `ON_THE_WIRE_S`."""

    def __init__(self) -> None:
        self.servers = Servers()
        self.first, self.second = self.servers.start("first"), self.servers.start("second")
        self.begun: Counter[QueueId] = Counter()
        self._slow: list[QueueId] = []

    def begin(self, node: Node, *areas: Area) -> list[QueueId]:
        """What a server begins now."""
        taken = [queue_id for area in areas or ALL for queue_id in node.take_ids(area) if node.may_try(queue_id)]
        self.begun.update(taken)
        return taken

    def put_on_the_wire(self) -> None:
        """All that waits is begun, and not ended."""
        self._slow = self.begin(self.first)
        self.second.remove(self.begin(self.second))
        assert self._slow

    def go_on(self) -> None:
        """The other server delivers whatever it is told of, until the slow one has ended, and longer."""
        for second in range(2 * int(ON_THE_WIRE_S)):
            self.servers.advance(1)
            self.second.remove(self.begin(self.second))
            if second == ON_THE_WIRE_S:
                self.first.remove(self._slow)
            if second > ON_THE_WIRE_S:
                self.first.remove(self.begin(self.first))
        assert self.first.search() == []

    @property
    def times(self) -> set[int]:
        """How often entries were begun."""
        return set(self.begun.values())


def by_a_lost_connection(deliveries: Deliveries) -> None:
    """The broker delivers the triggers again that the slow server has."""
    for _ in range(MESSAGES):
        deliveries.second.put()
    deliveries.put_on_the_wire()
    deliveries.servers.advance(7)
    deliveries.first.clients.broker.lose()


def by_a_flush(deliveries: Deliveries) -> None:
    """What was deferred, and is on the wire again, is published once more by the other server."""
    first, servers = deliveries.first, deliveries.servers
    for _ in range(MESSAGES):
        first.put()
    for node in (first, deliveries.second):
        node.defer(node.take_ids(), node.now() + 10)
    servers.advance(12)
    deliveries.put_on_the_wire()
    for _ in range(4):
        servers.wait(deliveries.second.queue.visit_all(Filter(), servers.now()))


WAYS = pytest.mark.parametrize("happens", [by_a_lost_connection, by_a_flush])


@WAYS
def test_each_is_delivered_once(happens: Callable[[Deliveries], None]) -> None:
    deliveries = Deliveries()
    happens(deliveries)
    deliveries.go_on()
    assert len(deliveries.begun) == MESSAGES
    assert deliveries.times == {1}


@WAYS
def test_where_nothing_is_claimed_some_are_delivered_twice(
    happens: Callable[[Deliveries], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Claims, "claim", Claims.claim)  # which is set back in the end
    FAULTS["no-claim"]()
    deliveries = Deliveries()
    happens(deliveries)
    deliveries.go_on()
    assert max(deliveries.times) > 1
