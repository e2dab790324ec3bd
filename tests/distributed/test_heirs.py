"""What a server in trouble leaves behind: how soon others have it, and what does not wait behind that."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.due.firing import REPLAYED_S
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.tables import DELETED, DUE, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.loading import NEW_AT_A_TIME, OTHERS_AT_A_TIME
from mailismus.queue.providers.distributed.hand.owning import CLAIM_AFTER_S, LEFT_FOR_S
from mailismus.queue.providers.distributed.hand.waiting import WAIT_S
from mailismus.queue.providers.distributed.stores.objects import IBody
from mailismus.queue.providers.distributed.stores.rows import Write
from tests.contracts.bench import NO_REPLY, addresses
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, taken_by_one
from tests.distributed.slow_claims import SlowClaims

STARTED_S = 4.0
"""Within so many seconds of a start what waits is given to the servers that may have it."""
MESSAGES = OTHERS_AT_A_TIME + 10


@pytest.fixture
def first(servers: Servers) -> Node:
    return servers.start("first")


@pytest.fixture
def second(servers: Servers, first: Node) -> Node:
    return servers.start("second")


def killed_with(servers: Servers, count: int) -> tuple[Node, list[QueueId]]:
    """A server that was killed, and what it had."""
    killed = servers.start("killed")
    for _ in range(count):
        killed.put()
    taken = killed.take_ids()
    assert len(taken) == count
    killed.kill()
    return killed, taken


def test_new_mail_waits_behind_no_claims(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    _, left = killed_with(servers, MESSAGES)
    heir = servers.start("heir")
    slow = SlowClaims(monkeypatch)
    servers.advance(WAIT_S + 2)
    assert len(slow.waiting) == OTHERS_AT_A_TIME
    assert heir.take_ids() == []
    put = [heir.put() for _ in range(NEW_AT_A_TIME + 3)]
    assert sorted(one.spool_id for one in heir.take_ids()) == sorted(put)
    while slow.waiting:
        slow.answer(len(slow.waiting))
        servers.advance(0.5)
    assert sorted(heir.take_ids()) == sorted(left)


def test_claims_are_asked_for_side_by_side_and_the_next_one_as_one_ends(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_with(servers, MESSAGES)
    heir = servers.start("heir")
    slow = SlowClaims(monkeypatch)
    servers.advance(WAIT_S + 2)
    assert slow.begun == OTHERS_AT_A_TIME
    slow.answer(3)
    servers.advance(0.5)
    assert slow.begun == OTHERS_AT_A_TIME + 3
    assert len(heir.take_ids()) == 3


def test_a_server_that_is_started_anew_keeps_nothing_waiting(servers: Servers, first: Node, second: Node) -> None:
    """The trigger was another server's without a claim: that one has ended, and the new one was never told."""
    for _ in range(8):
        first.put()
    taken = first.take_ids()
    second.take_ids()
    first.kill()
    servers.advance(1)
    assert second.take_ids() == []
    again = servers.start("first")
    servers.advance(STARTED_S)
    assert sorted([*second.take_ids(), *again.take_ids()]) == sorted(taken)


def test_what_a_third_server_may_have_waits(servers: Servers, first: Node, second: Node) -> None:
    third = servers.start("third")
    for _ in range(9):
        first.put()
    taken = first.take_ids()
    assert second.take_ids() != third.take_ids() != []
    third.host.freeze()  # it can't say that it has them not
    first.kill()
    servers.advance(1)
    nodes = [second, third, servers.start("first")]
    servers.advance(WAIT_S - 4)
    assert [queue_id for node in (nodes[0], nodes[2]) for queue_id in node.take_ids()] == []
    third.host.thaw()
    servers.advance(8)
    assert sorted(queue_id for node in nodes for queue_id in node.take_ids()) == sorted(taken)


def test_a_share_that_is_over_is_not_left_to_its_last_owner(servers: Servers, first: Node, second: Node) -> None:
    """Who delivered it keeps the claim: a trigger that comes to another server tells of nothing."""
    first.put()
    (entry,), one, other = taken_by_one(first, second)
    servers.advance(6)
    name = next(iter(one.shared.parts.hand.shares.values())).name
    one.remove([entry])
    body = write_trigger(attrs.evolve(trigger_of(name), is_from_row=True))
    for _ in range(2):  # the servers in turn
        servers.world.broker.add("mq.incoming", body)
        servers.advance(1)
    assert servers.wait(other.clients.rows.all_rows(DUE)) == []
    queue = servers.world.broker.queues["mq.incoming"]
    assert sum(len(consumer.held) for consumer in queue.consumers) == 0


# the broker is away


@pytest.mark.parametrize("is_answered", [False, True])
def test_what_a_server_has_claimed_and_not_read_as_it_lost_the_broker_is_free(
    servers: Servers, first: Node, monkeypatch: pytest.MonkeyPatch, *, is_answered: bool
) -> None:
    """It has the database, and its lease; the trigger goes to another server. `is_answered`: it can't read for a moment."""
    first.put()
    first.defer(taken := first.take_ids(), first.now() + 5)
    claims = SlowClaims(monkeypatch, are_done=True)
    servers.advance(7)
    assert len(claims.waiting) == 1
    monkeypatch.undo()
    second = servers.start("second")
    first.clients.rows.fates.is_away = is_answered
    claims.answer(is_answered)
    servers.advance(2)
    first.clients.broker.fates.is_away = True
    first.clients.broker.lose()
    claims.answer(not is_answered)
    first.clients.rows.fates.is_away = False
    servers.advance(2 * LEFT_FOR_S)
    assert second.take_ids(Area.DEFERRED) == taken != []


def test_mail_that_came_while_the_broker_was_away_is_there_soon_behind(servers: Servers, first: Node, second: Node) -> None:
    fates = [node.clients.broker.fates for node in (first, second)]
    for one in fates:
        one.is_away = True
    put = [node.put() for node in (first, second) for _ in range(5)]
    servers.advance(40)
    put += [first.put()]
    for one in fates:
        one.is_away = False
    servers.advance(STARTED_S)
    at_first, at_second = first.take_ids(), second.take_ids()
    assert sorted(one.spool_id for one in (*at_first, *at_second)) == sorted(put)
    first.remove(at_first)
    second.remove(at_second)
    servers.advance(150)
    assert first.take_all() == second.take_all() == []
    assert first.search() == []


# reports


def bounced(first: Node, second: Node) -> tuple[QueueId, Node, Node]:
    """A bounce, the server that has it, and the other one."""
    first.put()
    (entry,), one, other = taken_by_one(first, second)
    one.commit((), [Settlement(entry, Area.BOUNCES, one.now(), 1, NO_REPLY)])
    assert one.take_ids(Area.BOUNCES) == [entry]
    return entry, one, other


def reports(*nodes: Node) -> list[QueueId]:
    return [queue_id for node in nodes for queue_id in node.take_ids()]


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_report_is_refused_where_its_server_stood_still_behind_its_content(
    servers: Servers, first: Node, second: Node, monkeypatch: pytest.MonkeyPatch, *, is_claimed: bool
) -> None:
    entry, one, other = bounced(first, second)
    if is_claimed:
        servers.advance(CLAIM_AFTER_S + 2)
    put = one.clients.objects.put

    def put_and_freeze(key: str, body: IBody) -> Deferred[None]:
        done = put(key, body)
        one.host.freeze()
        return done

    monkeypatch.setattr(one.clients.objects, "put", put_and_freeze)
    errors: list[object] = []
    report = one.submission([b"a@b.example"], sender=b"")
    one.queue.commit([report], [Settlement(entry, None)]).addErrback(lambda failure: errors.append(failure.value))
    servers.advance(1)
    one.freeze(servers, 60)
    assert other.take_ids(Area.BOUNCES) == [entry]
    one.host.thaw()
    servers.advance(2)
    assert [type(error) for error in errors] == [Unavailable]
    other.commit([other.submission([b"a@b.example"], sender=b"")], [Settlement(entry, None)])
    servers.advance(60)
    assert len(reports(first, second)) == 1


def test_a_report_that_the_database_has_not_written_yet_at_a_kill_is_the_only_one(
    servers: Servers, first: Node, second: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database holds a batch that it will carry out, of a client that is dead, and is started anew."""
    entry, one, other = bounced(first, second)
    write = one.clients.rows.write

    def write_late(writes: Sequence[Write]) -> Deferred[None]:
        if {write.table.name for write in writes} >= {ENQUEUED.name, DELETED.name}:
            one.clients.rows.fates.plan(Fate.LATE, call="write")
        return write(writes)

    monkeypatch.setattr(one.clients.rows, "write", write_late)
    report = one.submission([b"a@b.example"], sender=b"")
    one.queue.commit([report], [Settlement(entry, None)]).addErrback(lambda _: None)
    servers.advance(1)
    one.kill()
    servers.advance(1)
    again = servers.start("first" if one is first else "second")
    servers.advance(REPLAYED_S - 5)
    assert other.take_ids(Area.BOUNCES) == again.take_ids(Area.BOUNCES) == []
    one.clients.rows.fates.do_late()
    servers.advance(120)
    assert other.take_ids(Area.BOUNCES) == again.take_ids(Area.BOUNCES) == []
    assert len(reports(other, again)) == 1


def test_bounces_of_a_server_that_was_started_anew_are_reported_within_a_minute(
    servers: Servers, first: Node, second: Node
) -> None:
    entry, one, other = bounced(first, second)
    one.kill()
    servers.advance(1)
    again = servers.start("first" if one is first else "second")
    servers.advance(REPLAYED_S + 15)
    assert [*other.take_ids(Area.BOUNCES), *again.take_ids(Area.BOUNCES)] == [entry]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_report_of_a_bounce_that_another_server_has_ended_is_refused(
    servers: Servers, first: Node, second: Node, *, is_known: bool
) -> None:
    """Of two recipients, where the message `is_known`: one bounce is left."""
    first.put(addresses(2))
    (entry, left), one, other = taken_by_one(first, second)
    bounces = [entry, left] if is_known else [entry]
    settled = [
        Settlement(one, Area.BOUNCES if one in bounces else None, servers.now(), 1, NO_REPLY) for one in (entry, left)
    ]
    one.commit((), settled)
    assert one.take_ids(Area.BOUNCES) == bounces
    one.remove([entry])
    report = one.submission([b"a@b.example"], sender=b"")
    with pytest.raises(Unavailable):
        one.commit([report], [Settlement(one, None) for one in bounces])
    servers.advance(5)
    assert reports(one, other) == []


def test_a_report_of_a_bounce_that_another_server_has_is_refused(servers: Servers, first: Node, second: Node) -> None:
    entry, _, other = bounced(first, second)
    with pytest.raises(Unavailable):
        other.commit([other.submission([b"a@b.example"], sender=b"")], [Settlement(entry, None)])
    assert reports(first, second) == []


def bounces_of(node: Node) -> list[QueueId]:
    """All that it has becomes bounces; they are out for a report."""
    entries = node.take_ids()
    node.commit((), [Settlement(entry, Area.BOUNCES, node.now(), 1, NO_REPLY) for entry in entries])
    return node.take_ids(Area.BOUNCES)


def test_bounces_stay_with_a_maker_that_began_a_moment_ago(servers: Servers, first: Node) -> None:
    """The other one reads due rows each minute, and looks at leases when it renews its own."""
    servers.advance(57)
    first.clients.rows.fates.plan(Fate.NEVER, call="change")  # the renewal before the minute is over
    maker = servers.start("maker")
    for _ in range(12):
        maker.put()
    made = bounces_of(maker)
    servers.advance(30)
    assert len(made) > 1
    assert all(map(maker.may_try, made))
    assert first.take_ids(Area.BOUNCES) == []


def test_so_are_those_that_wait_for_long(servers: Servers, first: Node, second: Node) -> None:
    """A start looks an hour ahead. A clock that was ahead puts a bounce's row there, too."""
    entry, one, other = bounced(first, second)
    one.queue.give_back([entry], one.now() + 1800)
    servers.advance(1)
    one.kill()
    servers.advance(1)
    again = servers.start("first" if one is first else "second")
    servers.advance(REPLAYED_S - 8)
    assert other.take_ids(Area.BOUNCES) == again.take_ids(Area.BOUNCES) == []
    servers.advance(18)
    assert [*other.take_ids(Area.BOUNCES), *again.take_ids(Area.BOUNCES)] == [entry]
