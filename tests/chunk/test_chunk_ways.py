"""Which way makes a batch durable: by what the ways cost lately, at a bounded price for looking."""

from __future__ import annotations

import attrs
import pytest

from mailismus.queue.providers.chunk.write.ways import DISTRUST_S, FEW, TRIAL_S, TRIAL_SHARE, SyncWay, WayChoice


@attrs.define
class Disk:
    """What barriers cost, in seconds, and a server that has one every `pause_s`."""

    each_s: float
    whole_s: float
    pause_s: float = 0.02
    now: float = 100.0
    spent_s: float = 0.0
    best_s: float = 0.0
    """What always the cheaper way would have cost."""

    def cost_s(self, way: SyncWay, count: int) -> float:
        return self.whole_s if way is SyncWay.WHOLE else self.each_s * count

    def run(self, choice: WayChoice, count: int, seconds: float) -> list[SyncWay]:
        """The ways of all barriers in that time."""
        until, taken = self.now + seconds, list[SyncWay]()
        while self.now < until:
            way = choice.choose(count, self.now)
            took_s = self.cost_s(way, count)
            self.now += took_s
            choice.note(way, count, took_s, self.now)
            self.spent_s += took_s
            self.best_s += min(self.cost_s(one, count) for one in (SyncWay.FILES, SyncWay.WHOLE))
            taken.append(way)
            self.now += self.pause_s
        return taken


def new(disk: Disk) -> WayChoice:
    return WayChoice(disk.now, has_whole=True)


def test_before_anything_is_known_few_are_synced_each_and_many_at_once() -> None:
    choice = WayChoice(5.0, has_whole=True)
    assert choice.choose(FEW, 5.0) is SyncWay.FILES
    assert choice.choose(FEW + 1, 5.0) is SyncWay.WHOLE


def test_where_a_file_system_may_keep_failures_back_each_file_is_synced() -> None:
    choice = WayChoice(5.0, has_whole=False)
    assert {choice.choose(count, now) for count in (1, FEW, 1000) for now in (5.0, 500.0)} == {SyncWay.FILES}


@pytest.mark.parametrize(
    ("each_s", "whole_s", "count", "best"),
    [
        (0.001, 0.002, 8, SyncWay.WHOLE),
        (0.001, 0.002, 1, SyncWay.FILES),
        (0.001, 0.07, 20, SyncWay.FILES),
        (0.002, 0.1, 200, SyncWay.WHOLE),
    ],
)
def test_the_cheaper_way_is_found_whatever_was_expected(each_s: float, whole_s: float, count: int, best: SyncWay) -> None:
    disk = Disk(each_s, whole_s)
    choice = new(disk)
    disk.run(choice, count, 20.0)
    taken = disk.run(choice, count, 20.0)
    assert taken.count(best) >= 0.95 * len(taken)


def test_a_writer_that_comes_makes_it_step_back_and_one_that_goes_is_noticed() -> None:
    disk = Disk(0.001, 0.002)
    choice = new(disk)
    disk.run(choice, 20, 10.0)
    disk.whole_s = 0.08
    taken = disk.run(choice, 20, 1.0)
    assert taken[0] is SyncWay.WHOLE
    assert taken[2:] == [SyncWay.FILES] * len(taken[2:])
    disk.run(choice, 20, 30.0)
    disk.whole_s = 0.002
    disk.run(choice, 20, 30.0)
    assert disk.run(choice, 20, 1.0).count(SyncWay.FILES) <= 1


@pytest.mark.parametrize(("whole_s", "count"), [(0.08, 4), (0.08, 20), (0.002, 200)])
def test_looking_at_the_dearer_way_costs_little_of_the_time(whole_s: float, count: int) -> None:
    disk = Disk(0.001, whole_s)
    choice = new(disk)
    disk.run(choice, count, 20.0)
    began, disk.spent_s, disk.best_s = disk.now, 0.0, 0.0
    disk.run(choice, count, 300.0)
    assert disk.spent_s - disk.best_s <= 1.5 / TRIAL_SHARE * (disk.now - began)


def test_after_a_failure_each_file_is_synced_for_a_while() -> None:
    choice = WayChoice(5.0, has_whole=True)
    choice.note(SyncWay.FILES, 1000, 1.0, 6.0)
    choice.note(SyncWay.WHOLE, 1000, 0.1, 6.0)
    assert choice.choose(1000, 10.0) is SyncWay.WHOLE
    choice.distrust(10.0)
    assert choice.choose(1000, 10.0) is SyncWay.FILES
    assert choice.choose(1000, 9.9 + DISTRUST_S) is SyncWay.FILES
    assert choice.choose(1000, 10.0 + DISTRUST_S) is SyncWay.WHOLE


def test_a_clock_that_stood_still_says_nothing() -> None:
    choice = WayChoice(5.0, has_whole=True)
    choice.note(SyncWay.FILES, FEW, 0.0, 5.0)
    choice.note(SyncWay.WHOLE, FEW, 0.001, 5.0)
    assert choice.choose(FEW, 5.5) is SyncWay.FILES


def test_what_small_barriers_cost_says_nothing_of_large_ones() -> None:
    choice = WayChoice(5.0, has_whole=True)
    choice.note(SyncWay.FILES, 1, 0.005, 5.0)
    choice.note(SyncWay.WHOLE, 1, 0.001, 5.0)
    assert choice.choose(1, 5.5) is SyncWay.WHOLE
    assert choice.choose(8, 5.5) is SyncWay.FILES


def test_the_way_that_was_not_tried_yet_is_tried_soon() -> None:
    choice = WayChoice(5.0, has_whole=True)
    choice.note(SyncWay.FILES, 8, 0.005, 5.5)
    assert choice.choose(8, 5.9) is SyncWay.FILES
    assert choice.choose(8, 5.1 + TRIAL_S) is SyncWay.WHOLE
