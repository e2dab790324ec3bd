"""What another server moved or ended counts here from the claim on, and what it goes on with ends with a delivery."""

from __future__ import annotations

from uuid import UUID

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.distributed.format.share import place_of
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, write_trigger
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.stores.rows import Put, Row
from tests.contracts.bench import addresses
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, taken_by_one

RIVAL = UUID(int=7)


def shares_in(servers: Servers, area: Area) -> list[Row]:
    """The heads of shares."""
    rows = servers.wait(servers.world.server().rows.all_rows(ENQUEUED))
    return [row for row in rows if row["queue_name"] == area.value and row["number"] == 0]


def hold_one_elsewhere(servers: Servers, *, is_out: bool) -> tuple[Node, QueueId, QueueId]:
    """A server that has two new entries without a claim, out or not; another one holds the first of them by an act, and
    gives the rest up."""
    one, other = servers.start("one"), servers.start("other")
    one.put(addresses(2))
    servers.advance(0.5)
    if other.shared.parts.hand.index.messages:
        one, other = other, one
    held, left = (QueueId(message.spool_id, entry.number) for message, entry in one.search())
    assert not is_out or one.take_ids() == [held, left]
    page = servers.wait(other.queue.claim(Filter(), None, 10))
    assert len(page.messages) == 1
    other.commit((), [Settlement(held, Area.HELD, other.now() + 10_000)])
    other.queue.give_back([left], other.now() + 1000)
    servers.advance(1)
    return one, held, left


def test_what_is_here_for_long_is_read_behind_its_claim(servers: Servers) -> None:
    one, _, left = hold_one_elsewhere(servers, is_out=False)
    servers.advance(7)
    assert one.take_ids() == [left]


def test_what_moves_on_is_read_behind_its_claim(servers: Servers) -> None:
    one, held, left = hold_one_elsewhere(servers, is_out=True)
    one.defer([held], one.now() + 60)
    assert {entry.number: entry.area for _, entry in one.search()} == {held.number: Area.HELD, left.number: Area.INCOMING}
    assert shares_in(servers, Area.DEFERRED) == []


def test_what_goes_on_twice_ends_with_a_late_delivery(servers: Servers) -> None:
    slow, heir = servers.start("slow"), servers.start("heir")
    slow.put()
    (entry,), slow, heir = taken_by_one(slow, heir)
    slow.freeze(servers, 60)
    for area in (Area.INCOMING, Area.DEFERRED):
        assert heir.take_ids(area) == [entry]
        heir.defer([entry], heir.now() + 5)
        servers.advance(6)
    heir.take_ids(Area.DEFERRED)
    heir.defer([entry], heir.now() + 1000)
    slow.host.thaw()
    slow.remove([entry])
    assert heir.search() == slow.search() == []
    assert [is_over(servers, row) for row in shares_in(servers, Area.DEFERRED)] == [True] * 3


def test_what_was_delivered_late_of_several_that_moved_ends_at_once(servers: Servers) -> None:
    slow, heir = servers.start("slow"), servers.start("heir")
    slow.put(addresses(2))
    entries, slow, heir = taken_by_one(slow, heir)
    slow.freeze(servers, 60)
    assert heir.take_ids() == entries
    heir.defer(entries, heir.now() + 1000)
    slow.host.thaw()
    slow.remove(entries[:1])
    assert [entry.number for _, entry in heir.search()] == [entries[1].number]


def test_what_was_delivered_with_all_that_was_left_ends_where_it_had_moved(servers: Servers) -> None:
    """The mark of all that was left counts behind that of the entry, which the heir wrote."""
    slow, heir = servers.start("slow"), servers.start("heir")
    slow.put(addresses(2))
    entries, slow, heir = taken_by_one(slow, heir)
    slow.freeze(servers, 60)
    assert heir.take_ids() == entries
    heir.defer(entries[:1], heir.now() + 1000)
    slow.host.thaw()
    slow.remove(entries)
    assert entries[0].number not in [entry.number for _, entry in heir.search()]
    marks = servers.wait(servers.world.server().rows.all_rows(DELETED))
    (mark,) = (row for row in marks if row["moved_to"] is not None and row["number"] == entries[0].number)
    assert mark["done_at"] is not None, "it says so itself"


def is_over(servers: Servers, head: Row) -> bool:
    name = place_of(head)
    assert name is not None
    found = servers.wait_for(read_share(servers.world.server().rows, name))
    return found.condition is Condition.OVER


def rival_of(servers: Servers, one: Node) -> bytes:
    """The rows of another server, which has deferred the same entry by a batch whose mark lost. Return its trigger."""
    rows = servers.wait(servers.world.server().rows.all_rows(ENQUEUED))
    late = servers.world.server().rows
    for row in rows:
        if row["queue_name"] == Area.DEFERRED.value:
            place = row["queue_name"], row["slice_start"], row["bucket"]
            cells = {column.name: row[column.name] for column in ENQUEUED.cells}
            servers.wait(late.write([Put(ENQUEUED, (*place, RIVAL, row["number"]), cells, one.now())]))
    return write_trigger(ShareTrigger("deferred", float(str(place[1])), int(str(place[2])), RIVAL))


def test_what_lost_against_another_share_is_marked_removed(servers: Servers) -> None:
    one = servers.start("one")
    one.put()
    taken = one.take_ids()
    one.defer(taken, one.now() + 60)
    servers.world.broker.add("mq.deferred", rival_of(servers, one))
    servers.advance(2)
    assert one.take_ids(Area.DEFERRED) == []
    marks = servers.wait(servers.world.server().rows.all_rows(DELETED))
    assert [row["number"] for row in marks if row["enqueue_id"] == RIVAL and row["removed_at"] is not None] == [1]


def test_a_share_waits_for_the_mark_of_its_origin(servers: Servers) -> None:
    """Of a batch a part may be seen before the rest."""
    one = servers.start("one")
    one.put()
    (taken,) = one.take_ids()
    one.defer([taken], one.now() + 60)
    (head,) = shares_in(servers, Area.DEFERRED)
    name = place_of(head)
    assert name is not None
    model = servers.world.rows.tables[DELETED.name]
    marks = dict(model)
    model.clear()
    found = servers.wait_for(read_share(servers.world.server().rows, name))
    assert found.condition is Condition.UNDER_WAY
    model.update(marks)
    found = servers.wait_for(read_share(servers.world.server().rows, name))
    assert found.condition is Condition.LIVES


def test_a_mark_that_can_not_be_read_ends_nothing(servers: Servers) -> None:
    one = servers.start("one")
    one.put()
    one.defer(one.take_ids(), one.now() + 60)
    (head,) = shares_in(servers, Area.DEFERRED)
    (mark,) = servers.wait(servers.world.server().rows.all_rows(DELETED))
    name, key = place_of(head), tuple(mark[column.name] for column in DELETED.key)
    assert name is not None
    servers.wait(servers.world.server().rows.write([Put(DELETED, key, {"moved_to": b"?"}, one.now() + 1)]))
    found = servers.wait_for(read_share(servers.world.server().rows, name))
    assert found.condition is Condition.UNDER_WAY


@pytest.mark.parametrize("fate", [Fate.NOT_DONE, Fate.NEVER])
def test_what_a_clean_stop_could_not_publish_is_delivered_again(servers: Servers, fate: Fate) -> None:
    one, other = servers.start("one"), servers.start("other")
    one.put()
    node, heir = (one, other) if (taken := one.take_ids()) else (other, one)
    taken = taken or other.take_ids()
    node.clients.broker.fates.plan(*[fate] * 3, call="publish")
    servers.wait(node.queue.close())
    servers.advance(60)
    assert heir.take_ids() == taken != []
