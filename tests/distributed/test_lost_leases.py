"""A server whose lease was void has nothing any more, and keeps nothing from others. What is left to others comes back."""

from __future__ import annotations

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from tests.distributed.servers import Node, Servers


def taken_by(servers: Servers, count: int) -> tuple[list[QueueId], Node, Node]:
    """What one of two servers has taken, that one, and the other, which has ended what it got."""
    one, other = servers.start("one"), servers.start("other")
    for _ in range(count):
        one.put()
    servers.advance(0.1)
    other.remove(other.take_ids())
    taken = one.take_ids()
    assert taken
    return taken, one, other


def test_what_was_claimed_is_not_begun_behind_a_void_lease(servers: Servers) -> None:
    taken, slow, heir = taken_by(servers, 6)
    servers.advance(7)  # it is claimed
    assert all(map(slow.may_try, taken))
    slow.freeze(servers, 60)
    assert sorted(heir.take_ids()) == taken
    assert not any(map(slow.may_try, taken)), "its lease is not sure, as it is thawed"
    slow.host.thaw()
    servers.advance(15)
    assert slow.shared.parts.lease.is_sure
    assert not any(map(slow.may_try, taken))
    assert all(map(heir.may_try, taken))


def test_triggers_go_back_where_the_lease_was_void_and_the_broker_was_there(servers: Servers) -> None:
    """Its connection with the broker outlasts the absence of the database."""
    taken, one, other = taken_by(servers, 6)
    one.queue.give_back(taken, one.now())
    one.clients.rows.fates.is_away = True
    servers.advance(45)
    one.clients.rows.fates.is_away = False
    found: list[QueueId] = []
    for _ in range(60):
        servers.advance(1)
        found += [*one.take_ids(), *other.take_ids()]
    assert sorted(found) == taken


def test_a_server_without_the_database_keeps_no_trigger_longer_than_its_lease(servers: Servers) -> None:
    """It can't ask whether its lease is void. It was, for the others, when its own clock says so."""
    taken, one, other = taken_by(servers, 6)
    one.queue.give_back(taken, one.now())
    one.clients.rows.fates.is_away = True
    servers.advance(LEASE_S + 5)
    assert sorted(other.take_ids()) == taken
    assert one.take_ids() == []
    one.clients.rows.fates.is_away = False
    servers.advance(15)
    assert one.shared.parts.lease.is_sure
    put = [one.put() for _ in range(4)]
    servers.advance(1)
    assert {queue_id.spool_id for node in (one, other) for queue_id in node.take_ids()} == set(put)


def test_what_was_left_to_a_server_comes_again_when_that_is_gone(servers: Servers) -> None:
    """Its trigger went to the other one, and was acked there; its own due row went long ago."""
    (entry, *_), one, other = taken_by(servers, 1)
    one.defer([entry], one.now() + 5)
    servers.advance(7)
    one, other = (one, other) if (taken := one.take_ids(Area.DEFERRED)) else (other, one)
    assert taken or one.take_ids(Area.DEFERRED) == [entry]
    servers.advance(900)
    assert one.may_try(entry)
    one.clients.broker.lose()
    servers.advance(60)
    assert other.take_ids(Area.DEFERRED) == []
    one.kill()
    servers.advance(61)
    assert other.take_ids(Area.DEFERRED) == [entry]
