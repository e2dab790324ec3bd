"""New mail without a trigger comes back by itself: what a dead server left behind, and what a purge took."""

from __future__ import annotations

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.tables import queue_of
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, read_trigger
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers

WITHIN_S = 660


def drain(servers: Servers, seconds: int, *nodes: Node) -> list[QueueId]:
    delivered: list[QueueId] = []
    for _ in range(seconds // 15):
        servers.advance(15)
        for node in nodes:
            tried = [queue_id for queue_id in node.take_ids() if node.may_try(queue_id)]
            node.remove(tried)
            delivered += tried
    return delivered


def test_rows_without_a_trigger_are_found(servers: Servers) -> None:
    first, second = servers.start("first"), servers.start("second")
    first.clients.broker.fates.plan(Fate.NEVER, call="publish")
    submission = first.submission()
    told: list[object] = []
    first.queue.commit([submission], []).addBoth(told.append)
    servers.advance(1)
    assert told == []
    first.kill()
    assert drain(servers, WITHIN_S, second) == [QueueId(submission.draft.spool_id, 1)]
    assert second.search() == []


def test_what_is_found_is_a_suspect(servers: Servers) -> None:
    """Another server may have it all the same."""
    one, other = servers.start("first"), servers.start("second")
    one.clients.broker.fates.plan(Fate.NEVER, call="publish")
    one.queue.commit([one.submission()], [])
    servers.advance(1)
    one.kill()
    queue, found = servers.world.broker.queues[queue_of(Area.INCOMING.value)], list[ShareTrigger]()
    for _ in range(WITHIN_S):
        servers.advance(1)
        bodies = [message.body for each in queue.consumers for message in each.held.values()]
        found += [trigger for body in bodies if (trigger := read_trigger(body)) is not None]
    assert other.take_ids() != []
    assert found != []
    assert all(trigger.is_suspect for trigger in found)


def test_what_was_purged_is_found(servers: Servers) -> None:
    nodes = [servers.start("first"), servers.start("second")]
    for node in nodes:
        node.clients.broker.fates.is_away = True
        node.clients.broker.lose()
    servers.advance(1)
    for node in nodes:
        node.clients.broker.fates.is_away = False
    put = [nodes[0].put() for _ in range(3)]
    servers.world.broker.queues[queue_of(Area.INCOMING.value)].waiting.clear()
    delivered = drain(servers, WITHIN_S, *nodes)
    assert sorted(one.spool_id for one in delivered) == sorted(put)


def test_what_a_server_has_is_left_alone(servers: Servers) -> None:
    first, second = servers.start("first"), servers.start("second")
    put = [second.put() for _ in range(4)]
    held = [*first.take_ids(), *second.take_ids()]
    assert sorted(one.spool_id for one in held) == sorted(put)
    before = [node.clients.broker.fates.calls.count("publish") for node in (first, second)]
    servers.advance(2 * WITHIN_S)
    assert [node.clients.broker.fates.calls.count("publish") for node in (first, second)] == before
    assert all(first.may_try(one) or second.may_try(one) for one in held)


def test_what_is_new_is_left_alone(servers: Servers) -> None:
    nodes = [servers.start("first"), servers.start("second")]
    for _ in range(30):  # whenever the look is, something is new
        for node in nodes:
            node.put()
            node.put()
        for node in nodes:
            node.take_ids()
        before = [node.clients.broker.fates.calls.count("publish") for node in nodes]
        servers.advance(4)
        assert [node.clients.broker.fates.calls.count("publish") for node in nodes] == before
        servers.advance(6)
