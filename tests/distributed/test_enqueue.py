"""What was acknowledged is there, whole, with something that has it delivered; whatever becomes of each call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Placement
from mailismus.queue.providers.distributed.enqueue.plan import Arrived, plan_enqueue
from mailismus.queue.providers.distributed.enqueue.steps import (
    PATIENCE_S,
    UNSURE_S,
    EnqueueClock,
    Enqueued,
    Enqueueing,
    EnqueueRefused,
)
from mailismus.queue.providers.distributed.format.share import Blob, Share, read_shares
from mailismus.queue.providers.distributed.format.tables import DUE, ENQUEUED, MAILS
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.view.change import ViewSettings
from tests.distributed.conformance.objects import Body
from tests.distributed.models.fates import Fate
from tests.distributed.world import START, Server, World

VIEW = ViewSettings(3600, 2, 1000)
CONTENT = Body(b"Received: x\r\n\r\nhello\r\n")
SPID = SpoolId(1 << 32 | 1)
SLICE = START // 3600 * 3600


def message(recipients: int = 2, placements: tuple[Placement, ...] | None = None, received_at: float = START) -> Arrived:
    names = tuple(b"user%d@example.net" % number for number in range(1, recipients + 1))
    envelope = Envelope(b"sender@example.com", names, b"192.0.2.1", True, 3, b"K=V")
    return Arrived(SPID, envelope, received_at, CONTENT.size_bytes, Blob("mail/1", CONTENT.sha256), placements)


def ids() -> Iterator[UUID]:
    return (UUID(int=number) for number in itertools.count(1))


def enqueue(world: World, server: Server, arrived: Arrived) -> Enqueued:
    numbers = ids()
    clock = EnqueueClock(world.clock.seconds, world.clock.seconds, world.pause, lambda: 1)
    steps = Enqueueing(server.stores, clock, lambda: next(numbers), lambda shares: None)
    return world.wait(steps.enqueue(arrived, CONTENT, VIEW, SLICE))


def stored(world: World, share: Share) -> Share | None:
    """The share as its rows say."""
    rows = world.wait(world.server().rows.rows(ENQUEUED, share.name.place.key))
    found = read_shares(share.name.place, rows)
    return next((other for other in found.shares if other.name == share.name), None)


def triggers(world: World) -> list[UUID]:
    """Shares that the broker holds triggers of."""
    found = [read_trigger(message.body) for queue in world.broker.queues.values() for message in queue.waiting]
    return [trigger.enqueue_id for trigger in found if trigger is not None]


def due(world: World) -> dict[object, object]:
    """Shares that a due row has published, and when."""
    return {row["enqueue_id"]: row["due_at"] for row in world.wait(world.server().rows.all_rows(DUE))}


def test_a_message_is_content_rows_and_a_trigger() -> None:
    world = World()
    done = enqueue(world, world.server(), message())
    (share,) = done.plan.shares
    assert stored(world, share) == share
    assert [entry.recipient for entry in share.message.entries] == [b"user1@example.net", b"user2@example.net"]
    assert world.objects.objects == {"mail/1": CONTENT.data}
    assert triggers(world) == [share.name.enqueue_id]
    assert due(world) == {}
    assert done.stale == ()
    assert world.wait(world.server().rows.all_rows(MAILS)) == []


def test_it_costs_a_put_a_write_and_a_publish() -> None:
    world = World()
    server = world.server()
    enqueue(world, server, message())
    assert [fates.calls for fates in server.fates] == [["put"], ["write"], ["publish"]]


def test_a_large_envelope_is_several_shares_in_one_partition_with_index_rows() -> None:
    world = World()
    done = enqueue(world, world.server(), message(1001))
    assert [len(share.message.entries) for share in done.plan.shares] == [500, 500, 1]
    assert len({share.name.place for share in done.plan.shares}) == 1
    assert sorted(triggers(world)) == sorted(share.name.enqueue_id for share in done.plan.shares)
    index = world.wait(world.server().rows.rows(MAILS, (SPID,)))
    assert [row["entries"] for row in index] == [500, 500, 1]


def test_a_message_of_another_slice_than_its_epoch_has_an_index_row() -> None:
    plan = plan_enqueue(message(), VIEW, SLICE - 3600, START, lambda: UUID(int=1), 1)
    assert [write.table for write in plan.writes].count(MAILS) == 1


def test_what_waits_has_a_due_row_and_no_trigger() -> None:
    world = World()
    reply = Reply(451, b"4.3.0", b"later")
    far = START + 291 * 365.25 * 86_400
    placements = (
        Placement(1, Area.DEFERRED, START + 900, 1, reply, b"mx"),
        Placement(2, Area.DEFERRED, far, 2, reply, b"mx"),
        Placement(3, Area.BOUNCES, START - 1, 3, reply, b"mx"),
        Placement(4, Area.HELD, START - 1, 3, reply, b"mx"),
    )
    done = enqueue(world, world.server(), message(4, placements))
    by_area = {(share.name.place.queue_name, share.due_at): share for share in done.plan.shares}
    assert len(by_area) == 4
    at_once = [by_area[area, START - 1].name.enqueue_id for area in ("bounces", "hold")]
    assert sorted(triggers(world)) == sorted(at_once)
    assert sorted(due(world).values()) == [START + 900, pytest.approx(far, abs=0.001)]  # type: ignore[type-var]
    assert all(stored(world, share) is not None for share in done.plan.shares)


@pytest.mark.parametrize("fate", [Fate.NOT_DONE, Fate.UNANSWERED, Fate.LATE, Fate.NEVER])
def test_without_the_broker_a_due_row_stands_for_the_trigger(fate: Fate) -> None:
    world = World()
    server = world.server()
    server.broker.fates.plan(fate)
    done = enqueue(world, server, message())
    (share,) = done.plan.shares
    (due_at,) = due(world).values()
    assert isinstance(due_at, float)
    is_due_at_once = due_at < START + UNSURE_S
    assert is_due_at_once == (fate is Fate.NOT_DONE), "nobody was told of it, nor will be"
    assert stored(world, share) == share


@pytest.mark.parametrize("place", [0, 1])
def test_a_refusal_of_content_or_rows_refuses_the_message(place: int) -> None:
    world = World()
    server = world.server()
    server.fates[place].plan(Fate.NOT_DONE)
    with pytest.raises(EnqueueRefused) as refused:
        enqueue(world, server, message())
    assert len(refused.value.unsure) == place
    assert triggers(world) == []


def test_a_server_that_stood_still_writes_the_rows_again_in_the_present_slice() -> None:
    world = World()
    server = world.server()
    numbers = ids()

    def elapsed() -> float:
        return 61.0 if "write" in server.rows.fates.calls else 0.0

    clock = EnqueueClock(world.clock.seconds, elapsed, world.pause, lambda: 1)
    steps = Enqueueing(server.stores, clock, lambda: next(numbers), lambda shares: None)
    done = world.wait(steps.enqueue(message(), CONTENT, VIEW, SLICE))
    assert [share.name.enqueue_id.int for share in done.stale] == [1]
    assert triggers(world) == [UUID(int=2)]


@given(*[st.lists(st.sampled_from(list(Fate)), max_size=4)] * 3)
def test_whatever_becomes_of_the_calls(of_objects: list[Fate], of_rows: list[Fate], of_broker: list[Fate]) -> None:
    world = World()
    server = world.server()
    for fates, planned in zip(server.fates, (of_objects, of_rows, of_broker), strict=True):
        fates.plan(*planned)
    begun = world.clock.seconds()
    refusals: list[EnqueueRefused] = []
    try:
        (share,) = enqueue(world, server, message()).plan.shares
    except EnqueueRefused as refused:
        refusals.append(refused)
    taken_s = world.clock.seconds() - begun
    for fates in server.fates:
        fates.do_late()
    there = {row["enqueue_id"] for row in world.wait(world.server().rows.all_rows(ENQUEUED))}
    if refusals:
        # Rows and triggers of it may be there, and all of them are named.
        assert {*there, *triggers(world)} <= {other.name.enqueue_id for other in refusals[0].unsure}
    else:
        assert stored(world, share) == share
        assert world.objects.objects == {"mail/1": CONTENT.data}
        assert share.name.enqueue_id in {*triggers(world), *due(world)}
    # What is under way when the patience is over is given up.
    assert taken_s <= PATIENCE_S + 1
