"""A broker that has lost data or a queue is filled again from the rows, within two minutes."""

from __future__ import annotations

import pytest

from mailismus.errors import StartError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TASKS, queue_of
from mailismus.queue.providers.distributed.identity.tasks import DONE, REFILL, WANTED, ServerTasks, want
from mailismus.queue.providers.distributed.setup import set_up
from mailismus.queue.providers.distributed.stores.failure import NotDone
from tests.contracts.bench import NO_REPLY
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, held_back, taken_by_one

WITHIN_S = 120.0


def owners(servers: Servers) -> dict[object, object]:
    rows = servers.wait(servers.world.server().rows.all_rows(TASKS))
    return {row["name"]: row["owner"] for row in rows if str(row["name"]).startswith(REFILL)}


def deliver_all(*nodes: Node) -> list[QueueId]:
    """What is delivered, each time it is."""
    delivered = []
    for node in nodes:
        for area in (Area.INCOMING, Area.DEFERRED, Area.BOUNCES):
            tried = [queue_id for queue_id in node.take_ids(area) if node.may_try(queue_id)]
            node.remove(tried)
            delivered += tried
    return delivered


def test_a_wiped_broker_is_filled_again(servers: Servers) -> None:
    node = servers.start("mx")
    put = [node.put() for _ in range(30)]
    deferred = node.take_ids(limit=6)
    node.defer(deferred[:3], node.now() + 40)
    node.defer(deferred[3:5], node.now() + 3600)
    node.commit((), [Settlement(deferred[5], Area.BOUNCES, node.now(), 1, NO_REPLY)])
    servers.world.broker.wipe()
    servers.advance(2)
    assert set(servers.world.broker.queues) == {*QUEUES, DEAD}
    delivered: list[QueueId] = []
    for _ in range(int(WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(node)
    assert sorted(one.spool_id for one in delivered) == sorted({*put} - {one.spool_id for one in deferred[3:5]})
    assert set(servers.world.broker.queues) == {*QUEUES, DEAD}
    servers.advance(3600)
    assert sorted(deliver_all(node)) == sorted(deferred[3:5])
    assert set(owners(servers).values()) == {DONE}
    assert node.search() == []


def test_two_servers_double_nothing(servers: Servers) -> None:
    nodes = [servers.start("first"), servers.start("second")]
    put = [node.put() for node in nodes for _ in range(20)]
    held = [(node, queue_id) for node in nodes for queue_id in node.take_ids(limit=5)]
    servers.advance(7)  # what is out is claimed
    servers.world.broker.wipe()
    delivered: list[QueueId] = []
    for turn in range(int(WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(*nodes)
        if turn == 8:
            for node, queue_id in held:
                assert node.may_try(queue_id)
                node.remove([queue_id])
                delivered.append(queue_id)
    assert sorted(one.spool_id for one in delivered) == sorted(put)
    servers.advance(60)
    assert deliver_all(*nodes) == []
    assert all(node.search() == [] for node in nodes)


def wiped_with(servers: Servers, area: Area, away: Node) -> None:
    """The broker loses the next trigger of an area, and all else. A server does not reach it then."""
    with held_back(servers):
        for _ in range(60):
            if servers.world.broker.queues[queue_of(area.value)].waiting:
                break
            servers.advance(1)
        away.clients.broker.fates.is_away = True
        servers.world.broker.wipe()
        servers.advance(5)
    away.clients.broker.fates.is_away = False


@pytest.mark.parametrize("area", [Area.INCOMING, Area.DEFERRED])
def test_what_was_due_by_another_clock_is_filled_in_too(servers: Servers, area: Area) -> None:
    """New mail has no due row, and that of what waited was published."""
    right = servers.start("right")
    if area is Area.DEFERRED:
        right.put()
        right.defer(right.take_ids(), right.now() + 20)
    slow = Node(servers, "slow", ahead_s=-55.0)
    servers.wait(slow.queue.open())
    with held_back(servers):
        spool_ids = [right.put()] if area is Area.INCOMING else [message.spool_id for message, _ in right.search()]
        wiped_with(servers, area, right)
    assert slow.shared.parts.refilling.refilled > 0
    delivered: list[QueueId] = []
    for _ in range(int(WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(right, slow)
    assert [one.spool_id for one in delivered] == spool_ids != []


def test_bounces_whose_maker_is_gone_come_again(servers: Servers) -> None:
    """Their due row was published at once, and that was lost."""
    maker, other = servers.start("maker"), servers.start("other")
    maker.put()
    (entry,), maker, other = taken_by_one(maker, other)
    maker.commit((), [Settlement(entry, Area.BOUNCES, maker.now(), 1, NO_REPLY)])
    maker.kill()
    wiped_with(servers, Area.BOUNCES, maker)
    delivered: list[QueueId] = []
    for _ in range(int(2 * WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(other)
    assert delivered == [entry]


def test_bounces_that_were_just_made_stay_with_their_maker(servers: Servers) -> None:
    first, second = servers.start("first"), servers.start("second")
    for _ in range(12):
        first.put()
    taken = first.take_ids()
    assert taken
    first.commit((), [Settlement(queue_id, Area.BOUNCES, first.now(), 1, NO_REPLY) for queue_id in taken])
    servers.world.broker.wipe()
    servers.advance(4)
    assert second.take_ids(Area.BOUNCES) == []
    assert sorted(first.take_ids(Area.BOUNCES)) == sorted(taken)
    servers.advance(200)
    assert second.take_ids(Area.BOUNCES) == []
    assert all(map(first.may_try, taken))


def test_what_a_server_had_claimed_has_an_heir_though_its_trigger_was_lost(servers: Servers) -> None:
    first, second = servers.start("first"), servers.start("second")
    put = [first.put() for _ in range(10)]
    taken = first.take_ids()
    servers.advance(7)
    servers.world.broker.wipe()
    servers.advance(60)
    assert all(map(first.may_try, taken))
    first.kill()
    delivered: list[QueueId] = []
    for _ in range(int(WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(second)
    assert sorted(one.spool_id for one in delivered) == sorted(put)


def test_a_server_that_starts_on_a_wiped_broker_fills_it(servers: Servers) -> None:
    node = servers.start("mx")
    put = [node.put() for _ in range(3)]
    node.kill()
    servers.world.broker.wipe()
    node = servers.start("mx")
    servers.advance(60)
    assert sorted(one.spool_id for one in deliver_all(node)) == sorted(put)


def test_queues_that_setup_has_made_again_are_filled(servers: Servers) -> None:
    node = servers.start("mx")
    put = [node.put() for _ in range(3)]
    node.kill()
    servers.world.broker.wipe()
    servers.wait_for(set_up(servers.world.server().stores))
    assert set(owners(servers).values()) == {WANTED}
    node = servers.start("mx")
    servers.advance(60)
    assert sorted(one.spool_id for one in deliver_all(node)) == sorted(put)


def test_a_first_setup_asks_for_nothing(servers: Servers) -> None:
    assert owners(servers) == {}


def test_a_bucket_that_is_missing_is_not_made(servers: Servers) -> None:
    servers.world.objects.objects = None
    with pytest.raises(StartError, match="the bucket"):
        servers.start("mx")


@pytest.mark.parametrize("kills_at_s", [0.2, 1, 2])
def test_who_dies_meanwhile_has_an_heir(servers: Servers, kills_at_s: float) -> None:
    first, second = servers.start("first"), servers.start("second")
    put = [node.put() for node in (first, second) for _ in range(10)]
    second.host.freeze()
    servers.world.broker.wipe()
    first.clients.broker.fates.plan(*[Fate.DONE] * 7, *[Fate.NEVER] * 50, call="publish")
    servers.advance(kills_at_s)
    first.kill()
    second.host.thaw()
    delivered: list[QueueId] = []
    for _ in range(int(WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(second)
    assert sorted(one.spool_id for one in delivered) == sorted(put)


def test_a_queue_that_can_not_be_consumed_is_made_anew(servers: Servers) -> None:
    """As RabbitMQ has it where a queue was lost but for its name."""
    node = servers.start("mx")
    put = [node.put() for _ in range(5)]
    name = queue_of(Area.INCOMING.value)
    lost = servers.world.broker.queues[name]
    servers.world.broker.stuck.add(name)
    node.clients.broker.lose()
    delivered: list[QueueId] = []
    for _ in range(int(WITHIN_S // 5)):
        servers.advance(5)
        delivered += deliver_all(node)
    assert servers.world.broker.queues[name] is not lost
    assert sorted(one.spool_id for one in delivered) == sorted(put)


def test_no_queue_is_removed_while_the_broker_confirms_nothing(servers: Servers) -> None:
    node = servers.start("mx")
    put = [node.put() for _ in range(5)]
    name = queue_of(Area.INCOMING.value)
    lost = servers.world.broker.queues[name]
    node.clients.broker.fates.is_full = True
    servers.world.broker.stuck.add(name)
    node.clients.broker.lose()
    servers.advance(300)
    assert servers.world.broker.queues[name] is lost
    node.clients.broker.fates.is_full = False
    servers.advance(WITHIN_S)
    assert sorted(one.spool_id for one in deliver_all(node)) == sorted(put)


def test_what_is_wanted_while_it_is_done_is_done_once_more(servers: Servers) -> None:
    node = servers.start("mx")
    rows, name = node.shared.parts.stores.rows, REFILL + "incoming"
    tasks = ServerTasks(rows, node.shared.parts.lease)
    assert not servers.wait_for(tasks.begin(name))
    servers.wait_for(want(rows, name))
    assert servers.wait_for(tasks.begin(name))
    servers.wait_for(want(rows, name))
    assert not servers.wait_for(tasks.end(name))
    assert servers.wait_for(tasks.open()) == [name]
    assert servers.wait_for(tasks.begin(name))
    assert servers.wait_for(tasks.end(name))
    assert servers.wait_for(tasks.open()) == []
    assert owners(servers) == {name: DONE}


def test_no_queue_is_removed_while_the_broker_is_away(servers: Servers) -> None:
    node = servers.start("mx")
    put = [node.put() for _ in range(5)]
    lost = dict(servers.world.broker.queues)
    node.clients.broker.fates.is_away = True
    node.clients.broker.lose()
    servers.advance(300)
    node.clients.broker.fates.is_away = False
    servers.advance(60)
    assert servers.world.broker.queues == lost
    assert sorted(one.spool_id for one in deliver_all(node)) == sorted(put)


@pytest.mark.parametrize("fate", list(Fate))
def test_what_is_wanted_is_written_whatever_becomes_of_the_call(servers: Servers, fate: Fate) -> None:
    rows = servers.world.server().rows
    rows.fates.plan(fate)
    try:
        servers.wait_for(want(rows, REFILL + "incoming"))
    except NotDone:
        assert fate is Fate.NOT_DONE
        return
    assert owners(servers) == {REFILL + "incoming": WANTED}
