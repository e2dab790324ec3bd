"""What is known of due rows."""

from __future__ import annotations

import itertools
from uuid import UUID

from mailismus.queue.providers.distributed.due.schedule import AreaSchedule
from mailismus.queue.providers.distributed.format.due import SLOT_S, DueKind, DueShare
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace

NAME = ShareName(SharePlace("incoming", 0.0, 0), UUID(int=7))


def test_several_rows_of_one_share_may_be_early() -> None:
    for times in itertools.permutations((15.0, 30.0, 45.0)):
        schedule = AreaSchedule(0.0)
        schedule.set_read_to(SLOT_S)
        for at in times:
            schedule.add(DueShare(NAME, at, 3, DueKind.GIVEN_BACK), is_ours=False)
        schedule.adopt(lambda _: False, 0.0)
        assert sorted(due.due_at for due in schedule.pop_due(1.0)) == [15.0, 30.0, 45.0]
        assert schedule.next_near() is None


def test_what_is_early_and_could_not_be_published_is_early_still() -> None:
    schedule, later = AreaSchedule(0.0), DueShare(NAME, 45.0, 3, DueKind.GIVEN_BACK)
    schedule.set_read_to(SLOT_S)
    schedule.add(later, early_at=0.0)
    (due,) = schedule.pop_due(1.0)
    schedule.again(due, 1.0)
    assert schedule.pop_due(2.0) == [due]
    schedule.published(due)
    assert schedule.passed(SLOT_S) == (SLOT_S, [0.0])


def test_what_two_servers_leave_for_the_same_time_each_of_them_publishes() -> None:
    """One of the rows is written over the other. Clocks differ: the first was published as the second was written."""
    schedule, theirs, ours = AreaSchedule(0.0), DueShare(NAME, 45.0, 3), DueShare(NAME, 45.0, 4)
    schedule.set_read_to(SLOT_S)
    schedule.add(theirs, is_ours=False)
    schedule.add(ours)
    assert schedule.pop_due(45.0) == [ours]


def test_what_was_published_and_is_left_anew_by_another_server_is_published_for_that_when_it_is_gone() -> None:
    schedule, ours, theirs = AreaSchedule(0.0), DueShare(NAME, 45.0, 4), DueShare(NAME, 45.0, 3)
    schedule.set_read_to(SLOT_S)
    schedule.add(ours)
    schedule.pop_due(45.0)
    schedule.published(ours)
    schedule.add(theirs, is_ours=False)
    schedule.adopt(lambda writer: writer != 3, 0.0)
    assert schedule.pop_due(46.0) == [theirs]
