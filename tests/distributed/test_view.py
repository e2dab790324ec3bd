"""The settings of the view: what may change, and the record that judges it, beside other servers and lost answers."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.format.slices import bucket_of, slice_start
from mailismus.queue.providers.distributed.format.tables import VIEW_HISTORY
from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.view.change import ReadingView, ViewSettings, reading_view, refusal_of
from mailismus.queue.providers.distributed.view.history import ViewHistory
from tests.distributed.models.fates import Fate
from tests.distributed.models.rows import ModelRows
from tests.distributed.world import World

HOUR = ViewSettings(3600, 3, 1000)


@pytest.mark.parametrize(
    ("minutes", "buckets", "is_allowed"),
    [(60, 3, True), (30, 3, True), (20, 3, True), (25, 3, False), (120, 3, False), (60, 4, True), (60, 2, False)],
)
def test_a_window_must_divide_the_old_one_and_no_bucket_may_go(minutes: int, buckets: int, is_allowed: bool) -> None:
    assert (refusal_of(HOUR, ViewSettings(minutes * 60, buckets, 7)) is None) == is_allowed


@pytest.mark.parametrize(
    ("new", "setting", "values"),
    [
        (ViewSettings(7200, 3, 1), "mta/queue/view/slicewindow", ("1h", "2h")),
        (ViewSettings(1500, 3, 1), "mta/queue/view/slicewindow", ("1h", "25m")),
        (ViewSettings(3600, 2, 1), "mta/queue/view/bucketcount", ("3", "2")),
    ],
)
def test_a_refusal_names_the_setting_and_both_values(new: ViewSettings, setting: str, values: tuple[str, str]) -> None:
    refusal = refusal_of(HOUR, new)
    assert refusal is not None
    assert refusal.setting == setting
    assert f"was {values[0]} and can't become {values[1]}" in refusal.text


@given(
    st.lists(st.tuples(st.integers(1, 7200), st.integers(1, 8)), min_size=1, max_size=6),
    st.floats(0, 4e9),
    st.integers(0, 2**63 - 1),
)
def test_rows_of_every_setting_that_was_allowed_are_found(asked: list[tuple[int, int]], at: float, spool_id: int) -> None:
    history = [ViewSettings(*asked[0], 1)]
    for window, buckets in asked[1:]:
        if refusal_of(history[-1], ViewSettings(window, buckets, 1)) is None:
            history.append(ViewSettings(window, buckets, 1))
    reading = reading_view(history)
    for view in history:
        start = slice_start(at, view.slice_window_s)
        assert start <= at < start + view.slice_window_s <= start + reading.longest_window_s
        assert slice_start(start, reading.slice_window_s) == start
        assert bucket_of(SpoolId(spool_id), view.bucket_count) < reading.bucket_count


class ViewWorld(World):
    """The database, and servers."""

    def begin(self, view: ViewSettings, rows: ModelRows | None = None) -> Deferred[list[ViewSettings]]:
        history = ViewHistory(rows or self.rows.client(), "mx1", self.clock.seconds)
        return Deferred.fromCoroutine(history.adopt(view))

    def adopt(self, view: ViewSettings, rows: ModelRows | None = None) -> list[ViewSettings]:
        """All settings that ever were, as the start was told."""
        return self.wait(self.begin(view, rows))

    @property
    def count(self) -> int:
        return len(self.wait(self.rows.client().rows(VIEW_HISTORY, ("all",))))


def test_the_first_start_writes_the_first_version_and_the_same_again_none() -> None:
    world = ViewWorld()
    assert world.adopt(HOUR) == [HOUR]
    assert world.count == 1
    assert world.adopt(HOUR) == [HOUR]
    assert world.count == 1


def test_an_allowed_change_is_a_new_version_and_readers_see_all_of_them() -> None:
    world = ViewWorld()
    world.adopt(HOUR)
    half, more = ViewSettings(1800, 3, 1), ViewSettings(1800, 5, 9)
    known = world.adopt(half)
    assert (known, reading_view(known), world.count) == ([HOUR, half], ReadingView(1800, 3, 3600), 2)
    known = world.adopt(more)
    assert (known, reading_view(known), world.count) == ([HOUR, half, more], ReadingView(1800, 5, 3600), 3)
    assert reading_view(world.adopt(ViewSettings(600, 5, 9))) == ReadingView(600, 5, 3600)


def test_a_change_that_would_lose_rows_is_refused_with_78() -> None:
    world = ViewWorld()
    world.adopt(HOUR)
    with pytest.raises(StartError) as refused:
        world.adopt(ViewSettings(1500, 3, 1000))
    assert (refused.value.status, refused.value.setting) == (os.EX_CONFIG, "mta/queue/view/slicewindow")
    assert world.count == 1


def test_of_two_servers_that_change_at_once_the_second_is_judged_by_the_first() -> None:
    world = ViewWorld()
    world.adopt(HOUR)
    half, third = ViewSettings(1800, 3, 1), ViewSettings(1200, 3, 1)
    answers: list[object] = []
    for view in (half, third):
        world.begin(view).addBoth(answers.append)
    for _ in range(50):
        world.clock.advance(0.1)
    first, second = answers
    assert first == [HOUR, half]
    assert "30m and can't become 20m" in str(second)
    assert world.count == 2


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.LATE, Fate.NEVER])
def test_a_lost_answer_neither_loses_nor_doubles_a_version(fate: Fate) -> None:
    world = ViewWorld()
    rows = world.rows.client()
    rows.fates.plan(fate, call="add")
    assert world.adopt(HOUR, rows) == [HOUR]
    rows.fates.do_late()
    assert world.count == 1


def test_without_the_database_nothing_is_adopted() -> None:
    world = ViewWorld()
    rows = world.rows.client()
    rows.fates.is_away = True
    with pytest.raises(NotDone):
        world.adopt(HOUR, rows)
