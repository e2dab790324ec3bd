"""A server whose clock is ahead removes nothing that others have, and hides nothing from them; one whose clock is behind
leaves its work to them: rows that it wrote would come into slices and slots that are over."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Message, Settlement
from mailismus.queue.providers.distributed.format.due import SLOT_S
from mailismus.queue.providers.distributed.format.tables import MAILS, queue_of
from mailismus.queue.providers.distributed.hand.owning import LEFT_FOR_S
from mailismus.queue.providers.distributed.hand.waiting import WAIT_S
from mailismus.queue.providers.distributed.identity.lease import LEASE_S, RENEW_S
from mailismus.queue.providers.distributed.watching import EACH_S as CLOCK_S
from tests.contracts.bench import NO_REPLY, addresses
from tests.distributed.harness import VIEW
from tests.distributed.servers import Node, Servers
from tests.distributed.test_enquiries import Delivery

DAYS_S = 3 * 86_400.0
HOURS_S = 3 * 3600.0
SLOTS_A_DAY = 86_400 // SLOT_S


def ahead(servers: Servers) -> Node:
    """A server, three days ahead of all others."""
    node = Node(servers, "ahead", ahead_s=DAYS_S)
    servers.wait(node.queue.open())
    return node


def both(servers: Servers, *, is_first: bool) -> tuple[Node, Node]:
    """That server, and another one. `is_first`: it was the first one ever."""
    if is_first:
        return ahead(servers), servers.start("right")
    right = servers.start("right")
    return ahead(servers), right


@pytest.mark.parametrize("is_first", [True, False])
def test_what_others_put_in_is_found_and_stays(servers: Servers, *, is_first: bool) -> None:
    fast, right = both(servers, is_first=is_first)
    move = fast.shared.parts.duties.move_starts
    servers.wait_for(move())
    put = [right.put() for _ in range(4)]
    servers.wait_for(move())
    servers.advance(5)
    assert {message.spool_id for message, _ in servers.start("third").search()} == set(put)
    assert servers.wait(right.queue.summary()).areas[Area.INCOMING].entries == 4


def test_nothing_is_carried(servers: Servers) -> None:
    fast, right = both(servers, is_first=False)
    right.put()
    held = [Settlement(queue_id, Area.HELD, servers.now() + DAYS_S) for queue_id in right.take_ids()]
    right.commit((), held)
    servers.advance(130)
    assert held
    assert fast.shared.parts.carrying.carried == 0


@pytest.mark.parametrize("is_first", [True, False])
def test_what_waits_is_published_at_its_time(servers: Servers, *, is_first: bool) -> None:
    fast, right = both(servers, is_first=is_first)
    servers.advance(130)
    fast.kill()
    right.put()
    right.defer(taken := right.take_ids(), servers.now() + 3600)
    right.kill()
    servers.advance(61)
    third = servers.start("third")
    assert third.take_ids(Area.DEFERRED) == []
    servers.advance(3600)
    assert third.take_ids(Area.DEFERRED) == taken != []


@pytest.mark.parametrize("is_at_start", [True, False])
def test_a_server_whose_clock_is_hours_behind_loses_nothing(servers: Servers, *, is_at_start: bool) -> None:
    servers.keep_s = 0.0
    right = servers.start("right")
    servers.advance(HOURS_S + 3 * VIEW.slice_window_s)
    servers.wait_for(right.shared.parts.duties.move_starts())  # slices of the past are cleaned up
    slow = Node(servers, "slow", ahead_s=-HOURS_S if is_at_start else 0.0)
    servers.wait(slow.queue.open())
    slow.ahead_s = -HOURS_S
    servers.advance(1 if is_at_start else CLOCK_S + 1)
    put = [right.put() for _ in range(8)]
    taken = slow.take_ids()
    slow.defer(taken, servers.now() - HOURS_S + 60)
    servers.advance(LEASE_S + WAIT_S + 20)
    slow.kill()
    found = [*right.take_all()]
    servers.advance(900)
    found += right.take_all()
    assert sorted(queue_id.spool_id for queue_id in found) == sorted(put)


def test_it_serves_again_once_its_clock_is_right(servers: Servers) -> None:
    slow = servers.start("slow")
    slow.put()
    slow.ahead_s = -HOURS_S
    servers.advance(CLOCK_S + RENEW_S + 1)
    parts = slow.shared.parts
    assert slow.queue.withheld() == "the clock of this server is 10800 s behind the database's"
    assert slow.take_ids() == []
    assert parts.lease.left_s is None
    assert not any(consumer.is_wanted for consumer in parts.consumers)
    slow.ahead_s = 0.0
    servers.advance(CLOCK_S + WAIT_S + 5)
    assert slow.queue.withheld() == ""
    assert len(slow.take_ids()) == 1
    slow.put()


def test_a_start_with_a_clock_that_is_weeks_ahead_reads_no_slots_of_weeks(servers: Servers) -> None:
    servers.start("right")
    fast = Node(servers, "fast", ahead_s=14 * 86_400.0)
    servers.wait(fast.queue.open())
    assert len(fast.clients.rows.fates.calls) < 2 * len(Area) * SLOTS_A_DAY


def test_a_server_whose_clock_is_behind_leaves_no_index_of_what_it_ends(servers: Servers) -> None:
    """By its clock the rows are written yet that another one wrote a moment ago."""
    fast = Node(servers, "fast", ahead_s=50.0)
    servers.wait(fast.queue.open())
    for _ in range(4):
        fast.put()
    fast.defer(fast.take_ids(), fast.now() + 55)
    slow = Node(servers, "slow", ahead_s=-50.0)
    servers.wait(slow.queue.open())
    servers.advance(10)
    for node in (fast, slow):
        node.remove(taken := node.take_ids(Area.DEFERRED))
        assert taken
    servers.advance(1)
    assert servers.wait(slow.clients.rows.all_rows(MAILS)) == []


def test_the_bounces_of_a_round_come_together_to_an_heir_whose_clock_is_behind(servers: Servers) -> None:
    """By its clock they are not due yet, as their maker is gone."""
    fast = Node(servers, "fast", ahead_s=50.0)
    servers.wait(fast.queue.open())
    servers.advance(20)
    fast.put(addresses(3))
    for entry in fast.take_ids():
        fast.commit((), [Settlement(entry, Area.BOUNCES, servers.now() + 50, 1, NO_REPLY)])
    heir = servers.start("heir")
    fast.kill()
    taken: list[list[Message]] = []

    def take() -> None:
        heir.queue.take(Area.BOUNCES, 9, servers.now(), None).addCallback(taken.append)

    heir.queue.ready(Area.BOUNCES).addCallback(lambda _: heir.host.callLater(0, take))
    servers.advance(LEASE_S + 15)
    assert [len(message.entries) for messages in taken for message in messages] == [3]


def leave(servers: Servers, node: Node, body: bytes) -> None:
    """A server gets a trigger of what another one has."""
    trigger = Delivery()
    node.shared.parts.loading.add(body, trigger)
    servers.advance(1)
    assert trigger.is_acked


def test_what_two_servers_leave_to_a_third_for_the_same_time_comes_again(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock of the second, the time at which the first has published it is yet to come."""
    owner = servers.start("owner")
    owner.put()
    (entry,) = owner.take_ids()
    owner.defer([entry], servers.now() + 5)
    servers.advance(7)
    assert owner.take_ids(Area.DEFERRED) == [entry]
    servers.advance(900)  # the row by which it waited has gone
    right = servers.start("right")
    queue = servers.world.broker.queues[queue_of(Area.DEFERRED.value)]
    monkeypatch.setattr(servers.world.broker, "hand_out", lambda name: None)
    owner.clients.broker.lose()
    leave(servers, right, queue.waiting.pop().body)
    slow = Node(servers, "slow", ahead_s=-LEFT_FOR_S)  # it reads the row
    servers.wait(slow.queue.open())
    while not queue.waiting:
        servers.advance(1)
    leave(servers, slow, queue.waiting.pop().body)
    monkeypatch.undo()
    owner.kill()
    found: list[QueueId] = []
    for _ in range(round(LEASE_S + 3 * LEFT_FOR_S)):
        servers.advance(1)
        found += [*right.take_ids(Area.DEFERRED), *slow.take_ids(Area.DEFERRED)]
    assert found == [entry]
