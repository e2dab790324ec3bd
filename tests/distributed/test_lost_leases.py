"""A server whose lease was void has nothing any more, and keeps nothing from others. What is left to others comes back."""

from __future__ import annotations

import pytest

from mailismus.errors import StartError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.tables import EPOCHS
from mailismus.queue.providers.distributed.hand.owning import CLAIM_AFTER_S
from mailismus.queue.providers.distributed.hand.waiting import WAIT_S
from mailismus.queue.providers.distributed.identity.gate import ConversionGate, set_gate
from mailismus.queue.providers.distributed.identity.lease import LEASE_S, RENEW_S, ServerLease
from mailismus.queue.providers.distributed.watching import EACH_S as CLOCK_S
from tests.distributed.servers import Node, Servers, taken_by_one
from tests.distributed.slow_claims import SlowClaims
from tests.distributed.test_wrong_clocks import HOURS_S


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


def claimed_without_answer(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> tuple[QueueId, Node, Node, SlowClaims]:
    """New mail, the server that has it out and has claimed it without an answer so far, and another server."""
    one, other = servers.start("one"), servers.start("other")
    one.put()
    (entry,), slow, heir = taken_by_one(one, other)
    claims = SlowClaims(monkeypatch, are_done=True)
    servers.advance(CLAIM_AFTER_S + 2)
    monkeypatch.undo()
    assert len(claims.waiting) == 1
    return entry, slow, heir, claims


def test_what_was_claimed_under_a_lease_that_is_void_is_not_relied_on_under_the_next(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes when the server knows that its lease was void, and has no other one yet."""
    entry, slow, heir, claims = claimed_without_answer(servers, monkeypatch)
    slow.clients.rows.fates.is_away = True
    servers.advance(LEASE_S + 2)
    claims.answer(1)
    slow.clients.rows.fates.is_away = False
    servers.advance(5)
    assert slow.shared.parts.lease.is_sure
    assert heir.take_ids() == [entry]
    assert heir.may_try(entry)
    assert not slow.may_try(entry)


def test_so_it_is_where_a_clock_that_is_far_behind_ended_the_lease(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes as it gives its triggers back."""
    entry, slow, heir, claims = claimed_without_answer(servers, monkeypatch)
    stop, consumer = slow.shared.parts.consumers[0].stop, slow.shared.parts.consumers[0]

    async def stop_and_hear() -> None:
        claims.answer(1)
        await stop()

    monkeypatch.setattr(consumer, "stop", stop_and_hear)
    slow.ahead_s = -HOURS_S
    servers.advance(CLOCK_S + RENEW_S + 1)
    assert claims.waiting == []
    slow.ahead_s = 0.0
    found: list[QueueId] = []
    for _ in range(60):
        servers.advance(1)
        found += heir.take_ids()
    assert slow.shared.parts.lease.is_sure
    assert found == [entry]
    assert not slow.may_try(entry)


def test_a_server_that_stood_still_leaves_a_queue_alone_that_is_being_converted(servers: Servers) -> None:
    """The command took it for dead. What it would take or deliver now is in the new queue already, or never will be."""
    one = servers.start("one")
    one.put()
    one.freeze(servers, 60)
    rows = servers.world.server().rows
    servers.wait_for(set_gate(rows, (ConversionGate.OPEN,), ConversionGate.LEAVING))
    one.host.thaw()
    for _ in range(40):
        servers.advance(1)
        assert not one.shared.parts.lease.is_sure
        assert one.shared.refusal()
        assert one.take_ids() == []
    assert servers.wait_for(ServerLease(rows, "command", servers.now).others()) == frozenset()
    servers.wait_for(set_gate(rows, (ConversionGate.LEAVING,), ConversionGate.OPEN))
    servers.advance(RENEW_S + WAIT_S)
    assert len(one.take_ids()) == 1


def test_a_server_that_is_shut_out_acquires_no_lease(servers: Servers) -> None:
    """A command that looks for servers would meet it, and each try would cost an epoch."""
    one = servers.start("one")
    one.freeze(servers, 60)
    rows = servers.world.server().rows
    servers.wait_for(set_gate(rows, (ConversionGate.OPEN,), ConversionGate.LEFT))
    before = servers.wait(rows.all_rows(EPOCHS))
    one.host.thaw()
    servers.advance(600)
    assert servers.wait(rows.all_rows(EPOCHS)) == before


def test_a_gate_that_is_shut_as_a_server_acquires_its_lease_is_seen_behind_it(servers: Servers) -> None:
    rows = servers.world.server().rows
    lease = ServerLease(rows, "one", servers.now)

    async def new_epoch() -> int:
        await set_gate(rows, (ConversionGate.OPEN,), ConversionGate.LEAVING)
        return 7

    with pytest.raises(StartError, match="a conversion of this queue is under way"):
        servers.wait_for(lease.serve(new_epoch))
    assert (lease.is_sure, servers.wait_for(lease.others())) == (False, frozenset())
