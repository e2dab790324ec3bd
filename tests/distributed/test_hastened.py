"""What is hastened, at each start and when a clock is set back, is taken from no server that has it without a claim."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.hand.waiting import WAIT_S
from tests.contracts.bench import NO_REPLY, beyond
from tests.distributed.servers import Node, Servers, taken_by_one


@pytest.fixture
def first(servers: Servers) -> Node:
    return servers.start("first")


@pytest.fixture
def second(servers: Servers, first: Node) -> Node:
    return servers.start("second")


@pytest.fixture(params=[0, 1], autouse=True)
def _turn(request: pytest.FixtureRequest, servers: Servers, second: Node) -> None:
    """The broker gives triggers to the servers in turn: to the one first, or to the other."""
    for queue in servers.world.broker.queues.values():
        queue.consumers.rotate(request.param)


def set_back(node: Node) -> None:
    """The clock of one server was set back."""
    node.queue.hasten(lambda area, attempts, due_at: min(due_at - 3600, node.now()), node.now())


def started(servers: Servers, node: Node, first: Node) -> Node:
    """The same server, started anew: it knows all due rows, and hastens those further ahead than any retry delay."""
    node.kill()
    servers.advance(1)
    again = servers.start("first" if node is first else "second")
    servers.world.broker.queues["mq.bounces"].consumers.rotate(1)  # it is the next one that is given a trigger
    again.queue.hasten(beyond(again.now() + 61, again.now()), again.now())
    return again


def bounced(first: Node, second: Node) -> tuple[QueueId, Node, Node]:
    """A bounce that was just made, the server that has it, and the other one."""
    first.put()
    (entry,), one, other = taken_by_one(first, second)
    one.commit((), [Settlement(entry, Area.BOUNCES, one.now(), 1, NO_REPLY)])
    return entry, one, other


def test_a_bounce_that_was_just_made_stays_with_its_maker(servers: Servers, first: Node, second: Node) -> None:
    """Its due row is further ahead than the longest retry delay: to a start that looks like a wrong clock."""
    entry, one, other = bounced(first, second)
    other = started(servers, other, first)
    servers.advance(3)
    assert other.take_ids(Area.BOUNCES) == []
    assert one.take_ids(Area.BOUNCES) == [entry]
    assert one.may_try(entry)
    one.commit([one.submission([b"a@b.example"], sender=b"")], [Settlement(entry, None)])
    servers.advance(WAIT_S + 20)
    assert one.take_ids(Area.BOUNCES) == other.take_ids(Area.BOUNCES) == []


def test_a_bounce_is_not_taken_from_its_maker_where_a_clock_was_set_back(
    servers: Servers, first: Node, second: Node
) -> None:
    entry, one, other = bounced(first, second)
    assert one.take_ids(Area.BOUNCES) == [entry]
    servers.world.broker.queues["mq.bounces"].consumers.rotate(1)  # it is the other one that is given a trigger
    set_back(other)
    servers.advance(WAIT_S + 20)
    assert other.take_ids(Area.BOUNCES) == []
    assert one.may_try(entry)


def test_new_mail_is_not_taken_from_the_server_that_has_it(servers: Servers, first: Node, second: Node) -> None:
    first.put()
    (entry,), one, other = taken_by_one(first, second)
    set_back(other)
    servers.advance(3)
    assert other.take_ids() == []
    servers.advance(WAIT_S + 20)
    assert other.take_ids() == []
    assert one.may_try(entry)


def test_a_bounce_that_its_maker_has_given_back_is_hastened(servers: Servers, first: Node, second: Node) -> None:
    entry, one, other = bounced(first, second)
    assert one.take_ids(Area.BOUNCES) == [entry]
    servers.advance(7)  # it is claimed
    one.queue.give_back([entry], one.now() + 1800)
    servers.advance(5)
    other = started(servers, other, first)
    servers.advance(WAIT_S + 5)
    assert [*one.take_ids(Area.BOUNCES), *other.take_ids(Area.BOUNCES)] == [entry]
