"""Services that are killed, frozen or full: each call fails as the interface says, and goes on once they are well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
from tests.distributed.conformance.objects import Body
from tests.distributed.conformance.rows import ENTRIES, LEASES, MARKS, put
from tests.distributed.services import do
from tests.distributed.test_services import CassandraHarness, RabbitHarness, SwiftHarness
from tests.distributed.waiting import turn_for, wait_for

pytestmark = pytest.mark.usefixtures("_name_threads")

T = TypeVar("T")


@pytest.fixture
def _well() -> Iterator[None]:
    """The services are well again behind a test that harms them."""
    yield
    for name in ("rabbitmq", "cassandra", "swift"):
        do("restart", name)


def failure_of(deferred: Deferred[T]) -> StoreFailure:
    with pytest.raises(StoreFailure) as raised:
        wait_for(deferred)
    return raised.value


@pytest.mark.usefixtures("_well")
def test_a_service_that_is_killed_frozen_or_full_fails_as_it_should() -> None:
    rabbit, cassandra, swift = RabbitHarness(), CassandraHarness(), SwiftHarness("s3")
    broker, rows, objects = rabbit.client(), cassandra.client(), swift.client()
    queue = rabbit.name("work")
    wait_for(broker.declare([queue]))
    wait_for(rows.make([ENTRIES, MARKS, LEASES]))
    wait_for(rows.write([put(1, recipient=b"a")]))
    wait_for(objects.make())
    do("restart", "rabbitmq")  # a quorum queue that was made a moment ago does not survive a kill

    for name in ("rabbitmq", "cassandra", "swift"):
        do("freeze", name)
    assert isinstance(failure_of(rows.write([put(2, recipient=b"b")])), Unanswered)
    assert isinstance(failure_of(objects.put("mail/a", Body(b"a"))), Unanswered)
    failure_of(broker.publish(queue, b"1"))
    for name in ("rabbitmq", "cassandra", "swift"):
        do("thaw", name)
    turn_for(2)
    wait_for(rows.write([put(2, recipient=b"b")]))
    wait_for(objects.put("mail/a", Body(b"a")))
    wait_for(broker.publish(queue, b"1"))

    do("fill", "rabbitmq")
    do("fill", "swift")
    turn_for(1)
    failure_of(broker.publish(queue, b"2"))
    full = failure_of(broker.publish(queue, b"2"))
    assert isinstance(full, NotDone)
    assert full.is_full
    failure_of(objects.put("mail/b", Body(b"b")))
    do("thaw", "rabbitmq")
    do("thaw", "swift")
    turn_for(2)
    wait_for(broker.publish(queue, b"2"))
    wait_for(objects.put("mail/b", Body(b"b")))

    for name in ("rabbitmq", "cassandra", "swift"):
        do("kill", name)
    turn_for(1)
    failure_of(rows.write([put(3, recipient=b"c")]))
    failure_of(objects.put("mail/c", Body(b"c")))
    failure_of(broker.publish(queue, b"3"))
    for name in ("rabbitmq", "cassandra", "swift"):
        do("restart", name)
    turn_for(3)
    wait_for(rows.write([put(3, recipient=b"c")]))
    assert len(wait_for(rows.rows(ENTRIES, ("incoming", 1_789_999_200.0)))) == 3
    wait_for(objects.put("mail/c", Body(b"c")))
    wait_for(broker.publish(queue, b"3"))
    assert wait_for(broker.depth(queue)) >= 3
    for harness in (rabbit, cassandra, swift):
        harness.close()
