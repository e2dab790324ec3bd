"""The clean-up of a slice leaves rows alone that came late, and no mark. A slice may be longer than those of today."""

from __future__ import annotations

from uuid import UUID

import pytest

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.marks import done_mark
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.stores.rows import Put
from mailismus.queue.providers.distributed.view.change import ViewSettings, reading_view
from tests.distributed import servers as making
from tests.distributed.harness import VIEW
from tests.distributed.servers import Node, Servers
from tests.distributed.world import START, World

KEEP_S = 86_400.0
PLACE = SharePlace(Area.INCOMING.value, slice_start(START, VIEW.slice_window_s), 0)


def test_late_rows_stay_and_all_marks_go() -> None:
    world = World()
    rows = world.server().rows
    starts = Starts(rows, lambda: reading_view([VIEW]), world.clock.seconds, KEEP_S)
    in_time, late = (ShareName(PLACE, UUID(int=number)) for number in (1, 2))
    world.wait(starts.load())
    world.wait(rows.write([Put(ENQUEUED, (*PLACE.key, in_time.enqueue_id, 1), {"recipient": b"a"}, START)]))
    world.wait(rows.write([done_mark(in_time, 0, START)]))
    world.clock.advance(5 * 3600)
    world.wait(starts.move())
    assert starts.browse_start(Area.INCOMING) > PLACE.slice_start
    world.wait(rows.write([Put(ENQUEUED, (*PLACE.key, late.enqueue_id, 1), {"recipient": b"b"}, world.clock.seconds())]))
    world.wait(rows.write([done_mark(late, 0, world.clock.seconds())]))
    world.clock.advance(KEEP_S)
    world.wait(starts.move())
    assert [row["enqueue_id"] for row in world.wait(rows.all_rows(ENQUEUED))] == [late.enqueue_id]
    assert world.wait(rows.all_rows(DELETED)) == []


@pytest.fixture
def old(servers: Servers) -> Node:
    """A server that has slices of an hour. What is over is removed soon."""
    servers.keep_s = 0.0
    return servers.start("old")


@pytest.fixture
def new(servers: Servers, old: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A server that was started with slices of ten minutes beside it."""
    monkeypatch.setattr(making, "VIEW", ViewSettings(600, VIEW.bucket_count, VIEW.pace))
    return servers.start("new")


def test_what_is_put_into_a_long_slice_is_found_where_others_have_short_ones(servers: Servers, old: Node, new: Node) -> None:
    servers.advance(1500)
    servers.wait_for(new.shared.parts.duties.move_starts())
    spool_id = old.put()
    assert [message.spool_id for message, _ in new.search()] == [spool_id]


def test_of_a_long_slice_no_row_is_left_without_its_marks(servers: Servers, old: Node, new: Node) -> None:
    servers.advance(1500)
    for _ in range(4):
        old.put()
    for node in (old, new):
        node.remove(node.take_ids())
    for _ in range(12):
        servers.advance(600)
        servers.wait_for(new.shared.parts.duties.move_starts())
    assert [*servers.wait(new.clients.rows.all_rows(ENQUEUED)), *servers.wait(new.clients.rows.all_rows(DELETED))] == []
