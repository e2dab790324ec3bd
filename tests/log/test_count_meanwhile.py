"""Counts of a log while its envelopes are moved, so that segments are freed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.interface import Summary
from mailismus.queue.providers.log.control import piece_reading
from mailismus.queue.providers.log.index.rest_counts import RestCounts
from mailismus.queue.providers.log.index.search_holds import HOLD_S, PLAN_HOLD_S
from mailismus.queue.providers.log.read import looking
from mailismus.queue.providers.log.read.planned_count import LogPlanCounter
from tests.log.story import Story
from tests.log.test_compaction import at_rest, compact


@pytest.fixture
def story() -> Story:
    return Story()


def entries_of(summary: Summary) -> int:
    return sum(count.entries for count in summary.areas.values())


def plan_of(story: Story) -> list[Mapping[str, object]]:
    plan = story.queue.counting_plan()
    return list(iter(plan.next, None))


def counted(story: Story, parts: list[Mapping[str, object]]) -> Summary:
    counter = LogPlanCounter(story.harness.disk)
    for part in parts:
        counter.add(part)
    return counter.summary()


def emptied(story: Story) -> int:
    compact(story)
    return story.queue.parts.compaction.emptied


def test_a_count_by_a_plan_misses_nothing_that_would_be_moved_meanwhile(story: Story) -> None:
    kept = at_rest(story, 8)
    parts = plan_of(story)
    assert emptied(story) == 0
    assert entries_of(counted(story, parts)) == len(kept)
    story.harness.advance(PLAN_HOLD_S + 1)
    assert emptied(story) > 5
    assert entries_of(counted(story, plan_of(story))) == len(kept)


def test_plans_one_after_the_other_do_not_stop_compaction(story: Story) -> None:
    at_rest(story, 8)
    emptied_at: list[tuple[float, int]] = []
    began_at = story.bench.now()
    while (elapsed_s := story.bench.now() - began_at) < 3 * PLAN_HOLD_S:
        plan_of(story)
        story.harness.round(story.queue)
        emptied_at.append((elapsed_s, story.queue.parts.compaction.emptied))
    assert not any(emptied for elapsed_s, emptied in emptied_at if elapsed_s < PLAN_HOLD_S / 2)
    assert emptied_at[-1][1] > 5


def test_a_count_of_the_server_misses_nothing_that_would_be_moved_meanwhile(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_reading, "SLICE_ENTRIES", 1)
    monkeypatch.setattr(looking, "RestCounts", partial(RestCounts, says_all=lambda _: False))
    kept = at_rest(story, 8)
    parts = story.queue.parts
    counting = story.queue.summary()
    turns = 0
    while not counting.called:
        story.harness.wait(Deferred.fromCoroutine(parts.compaction.turn()))
        story.harness.advance(HOLD_S / 10)
        turns += 1
    assert turns > 10
    assert entries_of(story.harness.wait(counting)) == len(kept)
    assert parts.search_holds.segments() == set()
    assert emptied(story) > 5
