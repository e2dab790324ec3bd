"""A take ends, whatever the times of lines and clusters are, and costs what it hands out."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.clustered.format.cluster import FoundLine
from mailismus.queue.providers.clustered.index import waiting_lines as waiting
from mailismus.queue.providers.clustered.index.waiting_lines import WaitingLines
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness
from tests.clustered.test_settles_while_moved import checkpoint, running
from tests.clustered.visits_machine import MESSAGES, VisitsMachine
from tests.contracts.bench import Bench, addresses
from tests.fakes.shares import Most


def test_every_take_ends_and_visits_a_cluster_once_at_most() -> None:
    run_state_machine_as_test(
        VisitsMachine,
        settings=settings(max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)),
    )


def test_a_flush_while_a_cluster_is_read_counts_for_lines_behind_the_read() -> None:
    machine = VisitsMachine()
    machine.begin(most=0)
    machine.append(message=MESSAGES[0], waits=[4000])
    machine.flush()
    machine.take(limit=1, most=1)
    machine.append(message=MESSAGES[0], waits=[4000])
    machine.flush()
    machine.teardown()  # looks whether all of it is handed out in time


def test_what_ends_untaken_while_its_line_is_in_memory_leaves_nothing_behind() -> None:
    machine = VisitsMachine()
    machine.begin(most=3)
    machine.append(message=MESSAGES[0], waits=[0, 0.5])
    machine.settle_untaken(QueueId(MESSAGES[0].spool_id, 1))
    machine.take(limit=1, most=0)
    machine.end_take()
    assert machine.index.later.count == 1
    machine.settle_untaken(QueueId(MESSAGES[0].spool_id, 2))
    machine.teardown()  # looks whether memory is free again


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_line_that_comes_behind_a_flush_waits_for_its_time(is_readable: bool) -> None:
    """Before the flushed cluster is read, while it is, or while that fails."""
    machine = VisitsMachine()
    machine.begin(most=0)
    machine.append(message=MESSAGES[0], waits=[4000])
    if not is_readable:
        machine.clusters_can_not_be_read()
    machine.flush()
    machine.append(message=MESSAGES[1], waits=[4000])
    machine.take(limit=1, most=1)
    machine.append(message=MESSAGES[2], waits=[4000])
    machine.teardown()  # looks whether any is handed out before its time


@pytest.mark.parametrize("count", [1, 3])
def test_what_ends_untaken_before_its_time_frees_its_place_in_memory_though_its_cluster_is_gone(count: int) -> None:
    harness, bench, queue, now = resting([5.0, *[30.0] * count])
    at(bench, now + 6)
    taken = bench.take_ids(Area.DEFERRED)
    later = queue.state.cluster_index.later
    assert later.count == count
    bench.remove(taken)
    bench.remove([QueueId(taken[0].spool_id, number) for number in range(2, count + 2)])
    checkpoint(harness, queue)
    assert not queue.state.cluster_index.clusters
    assert later.count == 0


def resting(waits_s: list[float]) -> tuple[ClusteredHarness, Bench, ClusteredQueue, float]:
    """One message with an entry for each wait, due so many seconds behind the time that is given, at rest."""
    harness, bench, queue = running()
    bench.put(addresses(len(waits_s)))
    now = bench.now()
    taken = zip(bench.take_ids(), waits_s, strict=True)
    bench.commit((), [Settlement(queue_id, Area.DEFERRED, now + wait_s, 1) for queue_id, wait_s in taken])
    checkpoint(harness, queue)
    harness.disk.acts.clear()
    return harness, bench, queue, now


def reads(harness: ClusteredHarness) -> int:
    """How often a cluster has been read."""
    return sum(act == "read" and path.endswith(".mqc") for act, path in harness.disk.acts)


def at(bench: Bench, now: float) -> None:
    bench.harness.advance(now - bench.now())


def test_what_falls_due_before_lines_that_are_held_back_is_handed_out_and_the_take_ends() -> None:
    harness, bench, queue = running()
    small, big = bench.put(), bench.put(addresses(3), sender=b"big@b.example")
    now = bench.now()
    due = {small: now + 10, big: now + 5}
    bench.commit((), [Settlement(queue_id, Area.DEFERRED, due[queue_id.spool_id], 1) for queue_id in bench.take_ids()])
    checkpoint(harness, queue)
    at(bench, now + 6)
    assert bench.take_ids(Area.DEFERRED, shares=Most(1)) == [QueueId(big, 1)]
    at(bench, now + 7.5)
    none_of_big = Most(1, {b"big@b.example": 0})
    assert bench.take_ids(Area.DEFERRED, shares=none_of_big) == []
    at(bench, now + 10.5)
    assert bench.take_ids(Area.DEFERRED, shares=none_of_big) == [QueueId(small, 1)]


def test_a_cluster_is_not_read_for_every_time_that_its_lines_are_due_at() -> None:
    harness, bench, _, now = resting([5 + number / 10 for number in range(500)])
    taken: list[QueueId] = []
    for step in range(700):
        at(bench, now + 5 + step / 10)
        taken += bench.take_ids(Area.DEFERRED)
    assert len(taken) == len(set(taken)) == 500
    assert reads(harness) <= 4


def test_without_memory_for_lines_that_are_not_due_a_cluster_is_read_once_a_second() -> None:
    harness, bench, _, now = resting([5 + number / 100 for number in range(500)])
    with patch.object(waiting, "MAX_LATER", 0):
        count = 0
        for step in range(700):
            at(bench, now + 5 + step / 100)
            count += len(bench.take_ids(Area.DEFERRED))
    assert count == 500
    assert reads(harness) <= 10


def test_what_was_given_back_is_not_read_again() -> None:
    harness, bench, queue, now = resting([5.0] * 50)
    at(bench, now + 6)
    for _ in range(20):
        taken = bench.take_ids(Area.DEFERRED)
        assert len(taken) == 50
        queue.give_back(taken, bench.now())
    assert reads(harness) == 1


def test_what_joins_lines_in_memory_is_not_read_again() -> None:
    harness, bench, queue, now = resting([5.0, 30.0])
    at(bench, now + 6)
    assert len(bench.take_ids(Area.DEFERRED)) == 1
    bench.put()
    bench.defer(bench.take_ids(), now + 20)
    checkpoint(harness, queue)
    assert bench.now() < now + 20
    at(bench, now + 31)
    assert len(bench.take_ids(Area.DEFERRED)) == 2
    assert reads(harness) == 1


@pytest.mark.parametrize("at_once", [1, 10, 200])
def test_lines_that_are_held_back_are_not_looked_at_in_each_take(at_once: int) -> None:
    _, bench, queue, now = resting([5.0] * 1000)
    at(bench, now + 6)
    looked = 0
    look = WaitingLines._due_line

    def counted(lines: WaitingLines, offset: int, at: float) -> FoundLine | None:
        nonlocal looked
        looked += 1
        return look(lines, offset, at)

    handed_out = 0
    with patch.object(WaitingLines, "_due_line", counted):
        for _ in range(3000):
            queue.room_again()
            taken = bench.take_ids(Area.DEFERRED, shares=Most(at_once))
            assert bench.take_ids(Area.DEFERRED, shares=Most(0)) == []
            handed_out += len(taken)
            bench.remove(taken)
            if handed_out == 1000:
                break
    assert handed_out == 1000
    assert looked <= 2000
