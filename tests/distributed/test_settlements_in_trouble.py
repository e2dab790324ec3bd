"""Settlements whose steps are cut off, or of which there are many: no content goes too early, and no ack."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.enqueue.steps import LATE_S
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED, MAILS
from tests.contracts.bench import CONTENT, addresses
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, freeze_as_it_writes
from tests.distributed.slow_claims import SlowClaims

LONG_REPLY = Reply(451, b"4.3.0", b"x" * 400)


def unacked(servers: Servers) -> int:
    """Triggers that the broker has, delivered or not."""
    queues = servers.world.broker.queues.values()
    return sum(len(queue.waiting) + sum(len(each.held) for each in queue.consumers) for queue in queues)


def test_a_trigger_is_acked_behind_the_content(servers: Servers, one: Node) -> None:
    one.put()
    one.clients.objects.fates.plan(Fate.NEVER, call="remove")
    one.remove(one.take_ids())
    servers.advance(5)
    assert servers.world.objects.objects != {}
    assert unacked(servers) == 1
    servers.advance(10)
    assert servers.world.objects.objects == {}
    assert unacked(servers) == 0


def test_what_was_delivered_does_not_wait_for_the_claim_of_what_moves(
    servers: Servers, one: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may be killed: what is durable then does not come again."""
    one.put(addresses(2))
    deferred, delivered = one.take_ids()
    slow = SlowClaims(monkeypatch)
    for settlement in (Settlement(deferred, Area.DEFERRED, one.now() + 60, 1, LONG_REPLY), Settlement(delivered, None)):
        one.queue.commit([], [settlement])
    servers.advance(0.5)
    assert len(slow.waiting) == 1
    (mark,) = servers.wait(one.clients.rows.all_rows(DELETED))
    assert mark["number"] == delivered.number
    slow.answer(1)
    monkeypatch.undo()
    servers.advance(62)
    assert one.take_ids(Area.DEFERRED) == [deferred]


def test_a_message_some_of_which_moved_by_another_batch_keeps_its_content(servers: Servers, one: Node) -> None:
    spool_id = one.put(addresses(500))
    taken, later = one.take_ids(), one.now() + 60
    deferred, delivered = taken[:50], taken[50:]  # the last batch ends all that is left
    one.commit(
        (),
        [
            *(Settlement(queue_id, Area.DEFERRED, later, 1, LONG_REPLY) for queue_id in deferred),
            *(Settlement(queue_id, None) for queue_id in delivered),
        ],
    )
    servers.advance(62)
    assert servers.world.objects.objects != {}
    assert sorted(one.take_ids(Area.DEFERRED)) == deferred
    assert one.read(spool_id) == CONTENT
    assert one.remove(deferred) == [spool_id]
    servers.advance(1)
    assert servers.world.objects.objects == {}


def test_what_a_server_deferred_too_late_moves_once_more(
    servers: Servers, one: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clean-up might have passed the slice of its rows."""
    one.put()
    taken, later = one.take_ids(), one.now() + 600
    servers.advance(7)  # it is claimed
    freeze_as_it_writes(one, monkeypatch)
    done = one.queue.commit((), [Settlement(taken[0], Area.DEFERRED, later, 1, LONG_REPLY)])
    servers.advance(70)
    one.host.thaw()
    thawed_at = one.now()
    servers.wait(done)
    (living,) = one.search()
    assert living[1].area is Area.DEFERRED
    rows = servers.wait(servers.world.server().rows.all_rows(ENQUEUED))
    times = [float(str(row["enqueued_at"])) for row in rows if row["number"] == 0 and row["queue_name"] == "deferred"]
    assert len(times) == 2
    assert min(times) < thawed_at - LATE_S < thawed_at <= max(times)
    found = []
    for _ in range(640):
        servers.advance(1)
        found += one.take_ids(Area.DEFERRED)
    assert found == taken


def test_what_could_not_be_published_is_found_by_an_heir(servers: Servers, one: Node) -> None:
    """Its slot stays until all of it was published."""
    one.put()
    taken = one.take_ids()
    one.defer(taken, one.now() + 10)
    one.clients.broker.fates.is_away = True
    one.clients.broker.lose()
    servers.advance(900)
    one.kill()
    heir, found = servers.start("heir"), []
    for _ in range(70):
        servers.advance(1)
        found += heir.take_ids(Area.DEFERRED)
    assert found == taken


@pytest.mark.parametrize("count", [1, 2])
def test_a_deferral_that_comes_when_the_message_is_over_leaves_nothing(servers: Servers, one: Node, count: int) -> None:
    one.put(addresses(count))
    taken = one.take_ids()
    one.clients.rows.fates.plan(Fate.LATE, call="write")
    one.queue.commit((), [Settlement(queue_id, Area.DEFERRED, one.now() + 10, 1) for queue_id in taken])
    servers.advance(1)
    one.kill()
    heir = servers.start("heir")
    servers.advance(40)
    assert heir.remove(heir.take_ids()) == [taken[0].spool_id]
    one.clients.rows.fates.do_late()
    servers.advance(60)
    assert heir.take_all() == []
    assert heir.search() == []
    assert servers.wait(servers.world.server().rows.all_rows(MAILS)) == []


def test_a_deferral_that_comes_while_some_of_the_message_lives_leaves_its_index(servers: Servers, one: Node) -> None:
    one.put(addresses(2))
    first, second = one.take_ids()
    one.clients.rows.fates.plan(Fate.LATE, call="write")
    one.queue.commit((), [Settlement(first, Area.DEFERRED, one.now() + 10, 1)])
    servers.advance(1)
    one.kill()
    heir = servers.start("heir")
    servers.advance(40)
    assert sorted(heir.take_ids()) == [first, second]
    heir.remove([first])
    heir.defer([second], heir.now() + 600)
    one.clients.rows.fates.do_late()
    servers.advance(60)
    assert heir.take_all() == []
    (row,) = [row for row in servers.wait(servers.world.server().rows.all_rows(MAILS)) if row["closed_at"] is None]
    assert row["queue_name"] == Area.DEFERRED.value
    assert [QueueId(message.spool_id, entry.number) for message, entry in heir.search()] == [second]
