"""Several servers share one queue: each entry is one server's, and what a server leaves behind another one has within a
minute."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import deferLater

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.distributed.browse.hurry import AT_A_TIME
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.format.tables import CLAIMS, MAILS
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.hand.held import Delivered
from mailismus.queue.providers.distributed.hand.leaving import leave_all
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.rows import Row, RowTable
from tests.contracts.bench import LATER_REPLY, NO_REPLY, addresses
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, taken_by_one

TAKEN_OVER_S = 61.0


@pytest.fixture
def first(servers: Servers) -> Node:
    return servers.start("first")


@pytest.fixture
def second(servers: Servers, first: Node) -> Node:
    return servers.start("second")


def rows(servers: Servers, table: RowTable) -> list[Row]:
    found = servers.wait(servers.world.server().rows.all_rows(table))
    return list(found)


def check_that_nothing_is_left(servers: Servers, node: Node) -> None:
    servers.advance(150)  # rows that wait are published, and found to be over
    assert node.take_all() == []
    assert node.search() == []
    assert servers.world.objects.objects == {}
    assert rows(servers, MAILS) == []
    queues = servers.world.broker.queues.values()
    assert sum(len(queue.waiting) + sum(len(one.held) for one in queue.consumers) for queue in queues) == 0


def one_at_the_other(first: Node, second: Node) -> tuple[QueueId, Node, Node]:
    """An entry, the server that has taken it, and the other one."""
    first.put()
    (entry,), holder, other = taken_by_one(first, second)
    return entry, holder, other


def test_both_deliver_and_none_what_the_other_has(servers: Servers, first: Node, second: Node) -> None:
    put = [first.put() for _ in range(10)] + [second.put() for _ in range(10)]
    at_first, at_second = first.take_ids(), second.take_ids()
    assert sorted(queue_id.spool_id for queue_id in (*at_first, *at_second)) == sorted(put)
    assert at_first
    assert at_second
    assert all(map(first.may_try, at_first))
    assert all(map(second.may_try, at_second))
    assert rows(servers, CLAIMS) == []
    assert sorted(first.remove(at_first) + second.remove(at_second)) == sorted(put)
    check_that_nothing_is_left(servers, first)


def test_what_a_killed_server_had_another_one_has_within_a_minute(servers: Servers, first: Node, second: Node) -> None:
    put = [first.put() for _ in range(9)]
    at_first, at_second = first.take_ids(), second.take_ids()
    first.remove(at_first[:1])
    first.defer(at_first[1:2], first.now() + 20)
    first.commit((), [Settlement(at_first[2], Area.BOUNCES, first.now(), 1, NO_REPLY)])
    second.remove(at_second)
    first.kill()
    servers.advance(25)
    assert second.take_all() == []
    servers.advance(TAKEN_OVER_S - 25)
    left = second.take_all()
    assert sorted(left) == sorted(at_first[1:])
    assert {queue_id.spool_id for queue_id in left} == set(put) - {at_first[0].spool_id} - {
        one.spool_id for one in at_second
    }
    second.remove(left)
    check_that_nothing_is_left(servers, second)


def test_a_clean_stop_leaves_everything_at_once(servers: Servers, first: Node, second: Node) -> None:
    for _ in range(6):
        first.put()
    at_first, at_second = first.take_ids(), second.take_ids()
    servers.wait(first.queue.close())
    servers.advance(2)
    left = second.take_ids()
    assert sorted(left) == sorted(at_first)
    second.remove([*left, *at_second])
    check_that_nothing_is_left(servers, second)


def test_what_a_clean_stop_leaves_is_to_be_claimed(servers: Servers, first: Node) -> None:
    """Its ack may be lost: then there are two triggers, and one of them may wait for long at a third server."""
    first.put()
    assert len(first.take_ids()) == 1
    servers.wait(first.queue.close())
    (message,) = servers.world.broker.queues["mq.incoming"].waiting
    trigger = read_trigger(message.body)
    assert trigger is not None
    assert trigger.is_from_row


def test_what_comes_back_to_a_server_that_stops_is_not_acked(servers: Servers, first: Node) -> None:
    first.put()
    first.take_ids()
    hand = cast(DistributedQueue, first.queue).parts.hand
    (held,) = hand.shares.values()
    came, back = _Delivery(), _Delivery()
    held.deliveries = [cast(Delivered, came)]

    class Quick:
        """A broker that delivers before it confirms."""

        def publish(self, queue: str, body: bytes) -> Deferred[None]:
            held.deliveries.append(cast(Delivered, back))
            return succeed(None)

    servers.wait(Deferred.fromCoroutine(leave_all(hand, cast(IBroker, Quick()))))

    assert came.is_acked
    assert not back.is_acked


class _Delivery:
    is_acked = False

    def ack(self) -> None:
        self.is_acked = True


def test_the_same_directory_takes_over_what_its_last_server_had_at_once(servers: Servers, first: Node) -> None:
    first.put()
    taken = first.take_ids()
    servers.advance(6)
    assert len(rows(servers, CLAIMS)) == 1
    first.kill()
    again = servers.start("first")
    servers.advance(2)
    assert again.take_ids() == taken


def test_a_server_that_stood_still_doubles_what_was_on_the_wire(servers: Servers, first: Node, second: Node) -> None:
    for _ in range(8):
        first.put()
    taken, others = first.take_ids(), second.take_ids()
    second.remove(others)
    on_the_wire, *waiting = taken
    assert first.may_try(on_the_wire)
    first.freeze(servers, 60)
    heir = second.take_ids()
    assert sorted(heir) == sorted(taken)
    assert all(map(second.may_try, heir))
    assert not any(map(first.may_try, waiting))
    first.host.thaw()
    assert not any(map(first.may_try, waiting))
    with pytest.raises(Unavailable, match="lease"):
        first.queue.draft()
    servers.advance(15)
    assert not any(map(first.may_try, waiting))
    first.queue.give_back(waiting, first.now())
    first.remove([on_the_wire])
    servers.advance(1)
    assert first.take_ids() == []
    second.remove(heir)
    spool_id = first.put()  # it serves again
    assert {queue_id.spool_id for queue_id in (*first.take_ids(), *second.take_ids())} == {spool_id}
    for node in (first, second):
        node.remove([QueueId(spool_id, 1)])
    check_that_nothing_is_left(servers, second)


@pytest.mark.parametrize("outcome", ["delivered", "deferred", "bounced"])
@pytest.mark.parametrize("late", ["delivered", "deferred", "bounced"])
def test_of_two_outcomes_one_counts(servers: Servers, first: Node, second: Node, outcome: str, late: str) -> None:
    """A server that stood still settles what its heir has settled: gone counts before a bounce, and what the heir has done
    before what comes late."""
    entry, slow, heir = one_at_the_other(first, second)
    slow.freeze(servers, 60)
    assert heir.take_ids() == [entry]
    areas = {"delivered": None, "deferred": Area.DEFERRED, "bounced": Area.BOUNCES}
    heir.commit((), [Settlement(entry, areas[outcome], heir.now() + 90, 1, LATER_REPLY)])
    slow.host.thaw()
    slow.commit((), [Settlement(entry, areas[late], slow.now() + 30, 1, LATER_REPLY)])
    wanted = None if "delivered" in (outcome, late) else areas[outcome]
    assert {found.area for _, found in heir.search()} == ({wanted} if wanted is not None else set())
    servers.advance(120)
    found = [(node, queue_id) for node in (slow, heir) for queue_id in node.take_all()]
    assert len(found) == (wanted is not None)
    for node, queue_id in found:
        assert node.remove([queue_id]) == [entry.spool_id]
    check_that_nothing_is_left(servers, heir)


def test_new_mail_whose_trigger_was_lost_is_not_begun(servers: Servers, first: Node, second: Node) -> None:
    entry, slow, heir = one_at_the_other(first, second)
    slow.clients.broker.lose()
    servers.advance(0.01)
    assert not slow.may_try(entry)
    servers.advance(28)
    assert slow.take_ids() == heir.take_ids() == []
    slow.queue.give_back([entry], slow.now())
    servers.advance(10)
    assert slow.take_ids() + heir.take_ids() == [entry]


def test_who_has_given_back_what_it_lost_is_not_waited_for(servers: Servers, first: Node, second: Node) -> None:
    entry, slow, heir = one_at_the_other(first, second)
    slow.clients.broker.lose()
    servers.advance(0.01)
    slow.queue.give_back([entry], slow.now())
    servers.advance(3)
    assert slow.take_ids() + heir.take_ids() == [entry]


def test_what_is_out_for_long_is_claimed_and_outlasts_the_broker(servers: Servers, first: Node, second: Node) -> None:
    entry, slow, heir = one_at_the_other(first, second)
    servers.advance(7)
    slow.clients.broker.lose()
    servers.advance(90)
    assert slow.may_try(entry)
    assert heir.take_ids() == []
    slow.remove([entry])
    check_that_nothing_is_left(servers, heir)


def test_a_second_trigger_of_a_claimed_share_waits_for_its_end(servers: Servers, first: Node, second: Node) -> None:
    entry, one, _ = one_at_the_other(first, second)
    one.defer([entry], one.now() + 10)
    servers.advance(12)
    owner, other = (first, second) if (taken := first.take_ids(Area.DEFERRED)) else (second, first)
    taken = taken or second.take_ids(Area.DEFERRED)
    assert taken == [entry]
    servers.wait(other.queue.visit_all(Filter(), servers.now()))
    servers.wait(other.queue.visit_all(Filter(), servers.now()))
    servers.advance(40)
    assert first.take_ids(Area.DEFERRED) == second.take_ids(Area.DEFERRED) == []
    assert owner.may_try(entry)
    owner.defer([entry], owner.now() + 10)
    servers.advance(30)
    assert first.take_ids(Area.DEFERRED) + second.take_ids(Area.DEFERRED) == [entry]


def test_a_flush_publishes_side_by_side(
    servers: Servers, first: Node, second: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(AT_A_TIME + 10):
        first.put()
    first.defer(first.take_ids(), first.now() + 1000)
    second.defer(second.take_ids(), second.now() + 1000)
    servers.advance(2)
    publish, answer_s = second.clients.broker.publish, 2.0
    monkeypatch.setattr(
        second.clients.broker, "publish", lambda queue, body: deferLater(servers.clock, answer_s, publish, queue, body)
    )
    begun = servers.now()
    flushed = servers.wait(second.queue.visit_all(Filter(), servers.now()))
    assert flushed.entries == AT_A_TIME + 10
    assert servers.now() - begun < 3 * answer_s
    servers.advance(3)
    assert len([*first.take_ids(Area.DEFERRED), *second.take_ids(Area.DEFERRED)]) == AT_A_TIME + 10


@pytest.mark.parametrize("is_own", [True, False])
def test_a_flush_leaves_alone_what_is_deferred_while_it_goes_on(
    servers: Servers, first: Node, second: Node, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    """What it made due comes again into slices that it has still to read."""
    first.put()
    first.defer(first.take_ids(), first.now() + 10_000)
    second.defer(second.take_ids(), second.now() + 10_000)
    servers.advance(2)
    living = second.shared.parts.starts.living

    async def with_what_comes(*given: Any) -> AsyncIterator[LivingShare]:
        monkeypatch.undo()
        servers.advance(130)
        node = second if is_own else first
        node.put()
        for one in (first, second):
            one.defer(one.take_ids(), one.now() + 10_000)
        async for found in living(*given):
            yield found

    monkeypatch.setattr(second.shared.parts.starts, "living", with_what_comes)
    flushed = servers.wait(second.queue.visit_all(Filter(), servers.now()))
    assert flushed.entries == 1
    assert second.entry_count() == 2


def test_what_is_given_back_for_long_is_free_for_others(servers: Servers, first: Node, second: Node) -> None:
    entry, one, other = one_at_the_other(first, second)
    servers.advance(6)
    one.queue.give_back([entry], one.now() + 10)
    servers.advance(1)
    one.kill()
    servers.advance(45)
    assert other.take_ids() == [entry]


def test_bounces_stay_with_the_server_that_made_them(servers: Servers, first: Node, second: Node) -> None:
    first.put(addresses(6))
    one, other = (first, second) if (taken := first.take_ids()) else (second, first)
    taken = taken or second.take_ids()
    for some in (taken[:3], taken[3:]):
        one.commit((), [Settlement(queue_id, Area.BOUNCES, one.now(), 1, NO_REPLY) for queue_id in some])
    servers.advance(130)
    assert other.take_ids(Area.BOUNCES) == []
    bounces = one.take_ids(Area.BOUNCES)
    assert sorted(bounces) == sorted(taken)
    assert one.may_try(bounces[0])
    assert one.remove(bounces) == [taken[0].spool_id]
    check_that_nothing_is_left(servers, other)


def test_the_bounces_of_one_round_have_one_heir(servers: Servers, first: Node, second: Node) -> None:
    first.put(addresses(6))
    one, other = (first, second) if (taken := first.take_ids()) else (second, first)
    taken = taken or second.take_ids()
    third = servers.start("third")
    for some in (taken[:2], taken[2:4], taken[4:]):
        one.commit((), [Settlement(queue_id, Area.BOUNCES, one.now(), 1, NO_REPLY) for queue_id in some])
        servers.advance(1)
    one.take_ids(Area.BOUNCES)
    one.kill()
    found: list[list[QueueId]] = []
    for _ in range(61):
        servers.advance(1)
        found += [some for node in (other, third) if (some := node.take_ids(Area.BOUNCES))]
    assert [sorted(some) for some in found] == [sorted(taken)]


def test_the_bounces_of_one_round_come_together_though_one_alone_is_published(
    servers: Servers, first: Node, second: Node
) -> None:
    first.put(addresses(6))
    one, other = (first, second) if (taken := first.take_ids()) else (second, first)
    taken = taken or second.take_ids()
    for some in (taken[:2], taken[2:4], taken[4:]):
        one.commit((), [Settlement(queue_id, Area.BOUNCES, one.now(), 1, NO_REPLY) for queue_id in some])
        servers.advance(1)
    one.take_ids(Area.BOUNCES)
    one.kill()
    other.clients.broker.fates.plan(Fate.DONE, *[Fate.NOT_DONE] * 40, call="publish")
    found: list[list[QueueId]] = []
    for _ in range(61):
        servers.advance(1)
        found += [some] if (some := other.take_ids(Area.BOUNCES)) else []
    assert [sorted(some) for some in found] == [sorted(taken)]


def test_an_act_does_not_take_what_another_server_has_claimed_and_says_so(
    servers: Servers, first: Node, second: Node
) -> None:
    entry, one, other = one_at_the_other(first, second)
    servers.advance(6)
    page = servers.wait(other.queue.claim(Filter(), None, 10))
    assert page.messages == ()
    assert [gap.reason for gap in page.gaps] == ["another server has it under way"]
    one.queue.give_back([entry], one.now() + 100)
    servers.advance(1)
    page = servers.wait(other.queue.claim(Filter(), None, 10))
    assert [message.spool_id for message in page.messages] == [entry.spool_id]


def test_an_act_elsewhere_counts_against_a_deferral_and_a_delivery_against_the_act(
    servers: Servers, first: Node, second: Node
) -> None:
    for is_delivered in (False, True):
        entry, one, other = one_at_the_other(first, second)
        page = servers.wait(other.queue.claim(Filter(), None, 10))
        assert [message.spool_id for message in page.messages] == [entry.spool_id]
        other.commit((), [Settlement(entry, Area.HELD, other.now() + 10_000)])
        one.commit((), [Settlement(entry, None if is_delivered else Area.DEFERRED, one.now() + 5, 1, LATER_REPLY)])
        servers.advance(30)
        assert first.take_all() == second.take_all() == []
        assert [found.area for _, found in other.search()] == ([] if is_delivered else [Area.HELD])
        assert [found.area for _, found in one.search()] == ([] if is_delivered else [Area.HELD])
        other.remove([entry])


def test_a_report_is_refused_where_another_server_may_have_the_bounces(servers: Servers, first: Node, second: Node) -> None:
    entry, one, other = one_at_the_other(first, second)
    one.commit((), [Settlement(entry, Area.BOUNCES, one.now(), 1, NO_REPLY)])
    assert one.take_ids(Area.BOUNCES) == [entry]
    report = one.submission([b"a@b.example"], sender=b"")
    one.freeze(servers, 60)
    assert other.take_ids(Area.BOUNCES) == [entry]
    one.host.thaw()
    with pytest.raises(Unavailable, match="another server"):
        one.commit([report], [Settlement(entry, None)])
    other.remove([entry])
