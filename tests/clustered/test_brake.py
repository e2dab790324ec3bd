"""The brake: 250s come at intervals while the journal is too long."""

from __future__ import annotations

import pytest

from mailismus.journal.throttle import LONGEST_S, MOST_WAIT_S, CommitThrottle
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import SEGMENT, ClusteredHarness, queue_settings
from tests.contracts.bench import Bench


def test_nobody_waits_while_the_journal_is_short_enough() -> None:
    brake = CommitThrottle()
    assert [brake.delay_s(5.0, 0.0) for _ in range(3)] == [0.0] * 3
    assert brake.braked == 0


def test_many_that_are_ready_at_once_go_one_after_the_other() -> None:
    brake = CommitThrottle()
    assert [brake.delay_s(5.0, 1.0) for _ in range(3)] == pytest.approx([LONGEST_S, 2 * LONGEST_S, 3 * LONGEST_S])
    assert brake.braked == 3


def test_the_interval_grows_with_the_journal() -> None:
    assert CommitThrottle().delay_s(5.0, 0.1) == pytest.approx(LONGEST_S / 10)
    assert CommitThrottle().delay_s(5.0, 7.0) == pytest.approx(LONGEST_S)


def test_one_that_comes_later_waits_for_nobody_who_has_gone() -> None:
    brake = CommitThrottle()
    brake.delay_s(5.0, 1.0)
    assert brake.delay_s(6.0, 1.0) == pytest.approx(LONGEST_S)


def test_no_wait_is_long_however_many_are_before() -> None:
    brake = CommitThrottle()
    assert max(brake.delay_s(5.0, 1.0) for _ in range(1000)) == MOST_WAIT_S


def test_a_clock_that_is_set_back_makes_nobody_wait_longer() -> None:
    brake = CommitThrottle()
    brake.delay_s(1e6, 1.0)
    assert brake.delay_s(5.0, 1.0) <= MOST_WAIT_S


def test_messages_are_answered_at_intervals_while_writing_behind_can_not_keep_up() -> None:
    harness = ClusteredHarness(queue_settings(maxsize=2 * SEGMENT))
    bench = Bench(harness, harness.make())
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    harness.settle_down()
    harness.disk.fault = lambda act, path: OSError(5, "injected") if act == "create" and path.endswith(".mqc") else None
    while not queue.parts.segments.excess:
        bench.put(content=b"x" * 100_000)
    braked = queue.parts.brake.braked
    answered: list[float] = []
    for _ in range(3):
        queue.commit([bench.submission()], ()).addCallback(lambda _: answered.append(harness.now()))
    harness.clock.pump([0.0001] * 200)
    assert len(answered) == 3
    assert len(set(answered)) == 3
    assert queue.parts.brake.braked - braked == 3
