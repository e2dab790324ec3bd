"""Marks: of several outcomes of an entry one counts, in whatever order they were written."""

from __future__ import annotations

import itertools
from uuid import UUID

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Message, Settlement
from mailismus.queue.providers.distributed.format.marks import WHOLE, Marks, done_mark, moved_mark, removed_mark
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace
from mailismus.queue.providers.distributed.format.tables import DELETED
from mailismus.queue.providers.distributed.settle.plan import Leaving, SettleBatch, plan_settlements
from mailismus.queue.providers.distributed.settle.rivals import Rival, losers_of, marks_of_the_gone
from mailismus.queue.providers.distributed.stores.rows import Write
from mailismus.queue.providers.distributed.view.change import ViewSettings
from tests.distributed.world import World

ONE = ShareName(SharePlace("incoming", 0.0, 0), UUID(int=1))
LATER = ShareName(SharePlace("deferred", 0.0, 0), UUID(int=2))
OTHER = ShareName(SharePlace("hold", 0.0, 0), UUID(int=3))
BOUNCE = ShareName(SharePlace("bounces", 0.0, 0), UUID(int=4))


def marks_after(*writes: Write) -> Marks:
    world = World()
    for write in writes:
        world.wait(world.server().rows.write([write]))
    rows = world.wait(world.server().rows.all_rows(DELETED))
    return Marks(rows)


@pytest.mark.parametrize("times", list(itertools.permutations([1.0, 2.0, 3.0])))
def test_gone_counts_before_a_bounce_and_that_before_a_move(times: tuple[float, float, float]) -> None:
    gone, bounced, moved = times
    writes = [moved_mark(ONE, 1, LATER, moved), moved_mark(ONE, 1, BOUNCE, bounced)]
    mark = marks_after(*writes).of(ONE.enqueue_id, 1)
    assert mark is not None
    assert mark.moved_to == BOUNCE
    for ended in (done_mark(ONE, 1, gone), removed_mark(ONE, 1, gone)):
        mark = marks_after(*writes, ended).of(ONE.enqueue_id, 1)
        assert mark is not None
        assert mark.is_gone
        assert mark.moved_to is None


def test_of_two_equal_moves_the_later_one_counts() -> None:
    mark = marks_after(moved_mark(ONE, 1, OTHER, 2.0), moved_mark(ONE, 1, LATER, 1.0)).of(ONE.enqueue_id, 1)
    assert mark is not None
    assert mark.moved_to == OTHER


def batch(area: Area | None, *numbers: int) -> SettleBatch:
    """What a server writes that has a share of two entries."""
    entries = [Entry(number, b"r%d@b.example" % number, Area.INCOMING, 0.0) for number in (1, 2)]
    message = Message(SpoolId(5), b"a@b.example", b"", False, 0.0, 9, 2, entries)
    share = Share(ONE, message, Blob("k", b""), 0.0, 0.0)
    settled = {number: (entries[number - 1], Settlement(QueueId(SpoolId(5), number), area, 50.0)) for number in numbers}
    leaving = Leaving(share, frozenset({1, 2}), True, settled)
    (found,) = plan_settlements(leaving, ViewSettings(3600, 1, 10), 10.0, lambda: UUID(int=9), 1)
    return found


def test_a_move_that_lost_is_ended() -> None:
    mine = batch(Area.DEFERRED, 1, 2)
    (new,) = mine.shares
    marks = marks_after(*mine.writes, done_mark(ONE, 1, 1.0))
    assert list(losers_of(mine, marks)) == [Rival(new.name, 1)]
    marks = marks_after(*mine.writes, moved_mark(ONE, 2, BOUNCE, 1.0))
    assert list(losers_of(mine, marks)) == [Rival(new.name, 2)]
    assert list(losers_of(mine, marks_after(*mine.writes))) == []


def test_what_was_delivered_ends_the_share_in_which_another_server_has_it() -> None:
    mine = batch(None, 1, 2)
    assert [write.key[-1] for write in mine.writes if write.table is DELETED] == [WHOLE]  # type: ignore[union-attr]
    marks = marks_after(*mine.writes, moved_mark(ONE, 2, LATER, 99.0))
    assert list(losers_of(mine, marks)) == [Rival(LATER, 2)]
    gone = marks_of_the_gone(mine, marks, 11.0)
    assert [put.key[-1] for put in gone] == [2]
    marks = marks_after(*mine.writes, moved_mark(ONE, 2, LATER, 99.0), *gone)
    mark = marks.of(ONE.enqueue_id, 2)
    assert mark is not None
    assert mark.is_gone
    assert marks_of_the_gone(mine, marks, 12.0) == []
