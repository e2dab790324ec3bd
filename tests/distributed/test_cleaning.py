"""The clean-up of a slice leaves rows alone that came late, and no mark."""

from __future__ import annotations

from uuid import UUID

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.marks import done_mark
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.stores.rows import Put
from tests.distributed.harness import VIEW
from tests.distributed.world import START, World

KEEP_S = 86_400.0
PLACE = SharePlace(Area.INCOMING.value, slice_start(START, VIEW.slice_window_s), 0)


def test_late_rows_stay_and_all_marks_go() -> None:
    world = World()
    rows = world.server().rows
    starts = Starts(rows, lambda: VIEW, world.clock.seconds, KEEP_S)
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
