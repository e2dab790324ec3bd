"""New mail of another server: its first trigger and its rows are enough, and what others mark before is noted there."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from mailismus.disk.posix import PosixDisk
from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.conversion.emptying import empty
from mailismus.queue.providers.distributed.format.marks import note_of, trigger_of
from mailismus.queue.providers.distributed.format.share import Share, ShareName
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.fsck.repairs import SharedRepairs
from mailismus.queue.providers.distributed.hand.loading import YOUNG_S
from mailismus.queue.providers.distributed.stopped.look import LookTerms, look_at
from mailismus.queue.providers.distributed.stores.rows import Row
from tests.contracts.bench import LATER_REPLY, addresses
from tests.distributed.harness import VIEW
from tests.distributed.models.fates import Fate
from tests.distributed.servers import NEW, Node, Servers, held_back, new_shares
from tests.distributed.test_arrived import Asked


def heads(servers: Servers) -> list[Row]:
    found = servers.wait(servers.world.server().rows.all_rows(ENQUEUED))
    return [row for row in found if row["number"] == 0 and row["queue_name"] == Area.INCOMING.value]


def deliver(node: Node, taken: Collection[QueueId]) -> list[SpoolId]:
    return node.commit((), [Settlement(queue_id, None, 0.0) for queue_id in taken])


def test_mail_of_another_server_costs_two_reads_and_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    with held_back(servers):
        spool_ids = [one.put(), one.put()]
        one.kill()
    asked = Asked(other, monkeypatch)
    servers.advance(1)
    taken = other.take_ids()
    assert {queue_id.spool_id for queue_id in taken} == set(spool_ids)
    for queue_id in taken:
        assert deliver(other, [queue_id]) == [queue_id.spool_id]
    servers.advance(1)
    assert [name for name in asked.read if name != "epochs"] == [ENQUEUED.name] * 2 + [DELETED.name] * 2
    assert asked.read.count("epochs") == 1
    assert asked.written == [{DELETED.name}] * 2
    assert all(row["marked_at"] is None for row in heads(servers))


def remove(node: Node, queue_ids: Collection[QueueId]) -> None:
    node.remove(queue_ids)


def defer(node: Node, queue_ids: Collection[QueueId]) -> None:
    node.defer(queue_ids, node.now() + 3600)


def hold_a_part(node: Node, queue_ids: Collection[QueueId]) -> None:
    settlements = [Settlement(queue_id, Area.HELD, node.now() + 3600, 1, LATER_REPLY) for queue_id in list(queue_ids)[:1]]
    node.commit((), settlements)


@pytest.mark.parametrize(("act", "left"), [(remove, 0), (defer, 0), (hold_a_part, 1)])
def test_what_another_server_has_ended_or_moved_is_not_taken(
    act: Callable[[Node, Collection[QueueId]], None], left: int
) -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    with held_back(servers):
        spool_id = one.put(addresses(2))
        act(one, [QueueId(spool_id, 1), QueueId(spool_id, 2)])
        one.kill()
    servers.advance(1)
    assert len(other.take_ids()) == left
    assert [row["marked_at"] is not None for row in heads(servers)] == [True]


def test_what_was_refused_is_not_taken_by_its_trigger() -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    with held_back(servers):
        one.clients.broker.fates.plan(Fate.UNANSWERED, call="publish")
        one.clients.rows.fates.plan(Fate.DONE, *[Fate.NOT_DONE] * 9, call="write")
        answers: list[object] = []
        one.queue.commit([one.submission()], []).addErrback(lambda failure: answers.append(failure.value))
        servers.advance(18)
        one.clients.rows.fates.forget()
        servers.advance(3)
        one.kill()
    assert [type(answer) for answer in answers] == [Unavailable]
    servers.advance(1)
    assert other.take_ids() == []
    assert other.queue.withheld() == ""
    assert not servers.world.broker.queues[NEW].waiting


def test_nor_what_was_refused_beside_another_message() -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    with held_back(servers):
        one.clients.objects.fates.plan(Fate.DONE, Fate.NOT_DONE, call="put")
        with pytest.raises(Unavailable):
            servers.wait(one.queue.commit([one.submission(), one.submission()], ()))
        servers.advance(1)
        one.kill()
    servers.advance(1)
    assert other.take_ids() == []
    assert not servers.world.broker.queues[NEW].waiting


def test_rows_that_were_never_told_of_have_no_note() -> None:
    servers = Servers()
    one = servers.start("one")
    one.clients.rows.fates.plan(*[Fate.NEVER] * 8, call="write")
    answers: list[object] = []
    one.queue.commit([one.submission()], []).addErrback(lambda failure: answers.append(failure.value))
    servers.advance(16)
    one.clients.rows.fates.forget()
    servers.advance(60)
    assert [type(answer) for answer in answers] == [Unavailable]
    assert len(servers.wait(servers.world.server().rows.all_rows(DELETED))) == 1
    assert heads(servers) == []
    assert one.search() == []


def test_a_conversion_leaves_a_note() -> None:
    servers = Servers()
    one = servers.start("one")
    other: list[Node] = []
    with held_back(servers):
        one.put()
        one.kill()
        terms = LookTerms(VIEW, 86_400.0, servers.now, servers.random.getrandbits)
        stores = servers.world.server().stores
        servers.wait_for(empty(stores, servers.wait_for(look_at(stores, terms))))
        other.append(servers.start("other"))
    servers.advance(1)
    assert other[0].take_ids() == []
    assert not servers.world.broker.queues[NEW].waiting


REPAIRS: list[Callable[[SharedRepairs, Share], Deferred[None]]] = [
    lambda repairs, share: Deferred.fromCoroutine(repairs.put_again(share, [1])),
    lambda repairs, share: Deferred.fromCoroutine(repairs.mark_removed(share, [1], is_closed=True)),
    lambda repairs, share: Deferred.fromCoroutine(
        repairs.mark_moved(share, [1], ShareName(share.name.place, UUID(int=7)), is_closed=True)
    ),
]


@pytest.mark.parametrize("repair", REPAIRS)
def test_a_repair_leaves_a_note(repair: Callable[[SharedRepairs, Share], Deferred[None]]) -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    stores, chance = servers.world.server().stores, servers.random.getrandbits
    repairs = SharedRepairs(stores, PosixDisk(), "", lambda: VIEW, servers.now, lambda: UUID(int=chance(128)))
    with held_back(servers):
        one.put()
        (share,) = new_shares(servers)
        servers.wait(repair(repairs, share))
        one.kill()
    servers.advance(1)
    assert other.take_ids() == []


def taken_first(servers: Servers, one: Node, other: Node, recipients: int) -> tuple[list[QueueId], Share]:
    """New mail that came in at one server, and that another one has by its first trigger; and its share."""
    with held_back(servers):
        one.put(addresses(recipients))
        one.kill()
    servers.advance(1)
    (share,) = new_shares(servers)
    return other.take_ids(), share


def tell_again(servers: Servers, share: Share) -> None:
    """Another program publishes a first trigger once more."""
    servers.world.broker.add(NEW, write_trigger(trigger_of(share.name)))
    servers.advance(1)


def end_and_defer(node: Node, taken: list[QueueId]) -> None:
    assert deliver(node, taken[:1]) == []
    node.defer(taken[1:], node.now() + 3600)


def test_a_first_trigger_that_comes_once_more_finds_what_has_moved() -> None:
    servers = Servers()
    one, other, third = (servers.start(name) for name in ("one", "other", "third"))
    taken, share = taken_first(servers, one, other, 2)
    owner, beside = (other, third) if taken else (third, other)
    taken = taken or third.take_ids()
    end_and_defer(owner, taken)
    for _ in range(2):  # to each of them
        tell_again(servers, share)
        assert [*owner.take_ids(), *beside.take_ids()] == []


def test_one_that_comes_once_more_finds_which_entries_have_ended() -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    taken, share = taken_first(servers, one, other, 3)
    assert deliver(other, taken[:1]) == []
    assert deliver(other, taken[1:2]) == []
    third = servers.start("third")
    tell_again(servers, share)
    tell_again(servers, share)
    # what is under way needs a first trigger that comes once: it is nobody else's by a claim
    assert [*other.take_ids(), *third.take_ids()] == taken[2:]


@pytest.mark.parametrize(("behind_s", "is_taken"), [(0, True), (YOUNG_S, False)])
def test_a_message_that_is_over_has_no_content_and_then_finds_its_mark(behind_s: float, is_taken: bool) -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    taken, share = taken_first(servers, one, other, 1)
    assert deliver(other, taken) == [taken[0].spool_id]
    servers.advance(behind_s)
    assert servers.world.objects.objects == {}
    tell_again(servers, share)
    assert bool(other.take_ids()) == is_taken
    if is_taken:
        with pytest.raises(Unavailable, match="not in the object store"):
            other.read(taken[0].spool_id)
        assert other.shared.parts.admission.absent.keys == []  # it does not count: its share is over
        other.queue.give_back(taken, other.now() + 10)
    servers.advance(60)
    assert other.take_ids() == []
    assert not servers.world.broker.queues[NEW].waiting


def test_mail_that_came_in_here_finds_its_mark_whenever_it_is_told_of_again() -> None:
    servers = Servers()
    one = servers.start("one")
    one.put()
    taken = one.take_ids()
    (share,) = new_shares(servers)
    assert deliver(one, taken) == [taken[0].spool_id]
    tell_again(servers, share)
    assert one.take_ids() == []


def test_a_mark_of_a_part_is_one_write_more_to_the_head_once(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    taken, _ = taken_first(servers, one, other, 3)
    asked = Asked(other, monkeypatch)
    for queue_id in taken:
        deliver(other, [queue_id])
    assert asked.written == [{DELETED.name, ENQUEUED.name}, {DELETED.name}, {DELETED.name}]


@pytest.mark.parametrize("is_lost", [True, False])
def test_rows_that_are_not_what_they_were_are_looked_for_in_the_marks(is_lost: bool) -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    with held_back(servers):
        one.put()
        one.kill()
        for partition in servers.world.rows.tables[ENQUEUED.name].values():
            for place in list(partition.rows):
                if is_lost or place[1] == 0:
                    del partition.rows[place]
    servers.advance(1)
    assert other.take_ids() == []
    assert len(servers.world.broker.queues["mq.dead"].waiting) == 1


def test_a_note_goes_with_its_rows() -> None:
    servers = Servers()
    one = servers.start("one")
    one.put()
    (share,) = new_shares(servers)
    (note,) = note_of(share, servers.now() + 9999)
    (head,) = (row for row in heads(servers))
    assert note.at == share.enqueued_at == head["enqueued_at"]
    assert note.key == tuple(head[column.name] for column in ENQUEUED.key)


def test_what_a_killed_server_was_told_of_first_is_looked_for_in_the_marks() -> None:
    servers = Servers()
    one, other = servers.start("one"), servers.start("other")
    with held_back(servers):
        one.put()
        one.kill()
    servers.advance(1)
    taken = other.take_ids()
    other.clients.objects.fates.plan(Fate.NEVER, call="remove")
    assert deliver(other, taken) == [taken[0].spool_id]
    other.kill()  # its mark is there, its trigger was not acked
    third = servers.start("third")
    servers.advance(YOUNG_S - 10)
    assert third.take_ids() == []
    assert not servers.world.broker.queues[NEW].waiting
