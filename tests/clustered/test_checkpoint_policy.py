"""When a checkpoint begins: told by numbers and times alone."""

from __future__ import annotations

import pytest

from mailismus.queue.providers.clustered.checkpoint.policy import (
    AGAIN_S,
    IDLE_S,
    MOST_ENTRIES,
    MOST_ITEMS,
    CheckpointPolicy,
)

NOW = 1_700_000_000.0
MAXAGE_S = 3.0
LARGEST = 1000


@pytest.fixture
def policy() -> CheckpointPolicy:
    return CheckpointPolicy(MAXAGE_S, LARGEST)


def test_nothing_is_due_where_nothing_changed(policy: CheckpointPolicy) -> None:
    assert not policy.is_due(NOW, None)
    assert not policy.has_new_items(0)


@pytest.mark.parametrize(("age_s", "is_due"), [(0.0, False), (2.9, False), (3.0, True), (60.0, True), (-1.0, True)])
def test_a_message_older_than_maxage_is_due_and_one_ahead_of_a_clock_set_back(
    policy: CheckpointPolicy, age_s: float, is_due: bool
) -> None:
    assert policy.is_due(NOW, NOW - age_s) is is_due


def test_a_change_is_covered_a_while_after_the_first_one(policy: CheckpointPolicy) -> None:
    policy.note_change(NOW)
    policy.note_change(NOW + IDLE_S / 2)
    assert not policy.is_due(NOW + IDLE_S - 0.1, None)
    assert policy.is_due(NOW + IDLE_S, None)
    assert policy.is_due(NOW - 1, None)  # a clock that was set back


def test_a_durable_checkpoint_covers_what_changed(policy: CheckpointPolicy) -> None:
    policy.note_change(NOW)
    policy.note_durable(7)
    assert not policy.is_due(NOW + IDLE_S, None)
    assert not policy.has_new_items(7)
    assert policy.has_new_items(8)


@pytest.mark.parametrize(
    ("entries", "items", "used_bytes", "is_over"),
    [
        (MOST_ENTRIES - 1, MOST_ITEMS - 1, LARGEST - 1, False),
        (MOST_ENTRIES, 0, 0, True),
        (0, MOST_ITEMS, 0, True),
        (0, 0, LARGEST, True),
    ],
)
def test_each_limit_begins_one(policy: CheckpointPolicy, entries: int, items: int, used_bytes: int, is_over: bool) -> None:
    assert policy.is_over_limit(entries, items, used_bytes) is is_over


def test_items_count_from_the_last_checkpoint_on(policy: CheckpointPolicy) -> None:
    policy.note_durable(10)
    assert not policy.is_over_limit(0, MOST_ITEMS + 9, 0)
    assert policy.is_over_limit(0, MOST_ITEMS + 10, 0)


def test_none_begins_for_a_while_after_an_abandoned_one_and_what_changed_is_kept_in_mind(policy: CheckpointPolicy) -> None:
    assert policy.may_begin(NOW)
    policy.note_abandoned(NOW)
    assert not policy.may_begin(NOW)
    assert not policy.may_begin(NOW + AGAIN_S - 0.1)
    assert policy.may_begin(NOW + AGAIN_S)
    assert policy.may_begin(NOW - 10)  # a clock that was set back does not put it off
    assert policy.is_due(NOW + IDLE_S, None)
