"""Work that may take its time leaves a busy process most of its time, and hardly delays an idle one."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.throttle import LEAST_S, MOST_S, SHARE, WorkClocks, WorkThrottle


class Process:
    """A process that is busy for a share of the time, and the thread that asks."""

    def __init__(self, busy: float) -> None:
        self.clock, self.busy, self.thread_s = Clock(), busy, 0.0
        self.throttle = WorkThrottle(WorkClocks(self.clock, lambda: self.busy * self.clock.seconds(), lambda: self.thread_s))

    def pause(self, used_s: float) -> float:
        """How long it pauses behind work of so many processor seconds."""
        began_s = self.clock.seconds()
        rested = Deferred.fromCoroutine(self.throttle.rest(used_s))
        while not rested.called:
            self.clock.advance(LEAST_S / 4)
        return float(self.clock.seconds() - began_s)


def test_a_busy_process_keeps_most_of_its_time() -> None:
    process = Process(1.0)
    for _ in range(3):
        assert 0.005 / (0.005 + process.pause(0.005)) == pytest.approx(SHARE, rel=0.05)


def test_an_idle_process_pauses_for_a_moment() -> None:
    process = Process(0.0)
    process.pause(0.005)
    assert process.pause(0.005) <= 2 * LEAST_S


def test_a_process_that_is_busy_for_half_of_the_time_counts_as_busy() -> None:
    process = Process(0.5)
    process.pause(0.005)
    assert process.pause(0.005) == pytest.approx(0.005 * (1 / SHARE - 1), rel=0.05)


def test_a_pause_has_an_end() -> None:
    assert Process(1.0).pause(100.0) <= 1.01 * MOST_S


def test_several_share_what_one_has() -> None:
    process = Process(1.0)
    rested = [Deferred.fromCoroutine(process.throttle.rest(0.005)) for _ in range(3)]
    pause_s = 0.005 * (1 / SHARE - 1)
    process.clock.pump([pause_s / 100] * 150)
    assert [one.called for one in rested] == [True, False, False]
    process.clock.pump([pause_s / 100] * 200)
    assert all(one.called for one in rested)


def test_what_an_act_takes_is_told() -> None:
    process = Process(1.0)

    def act() -> str:
        process.thread_s += 0.25
        return "done"

    assert process.throttle.metered(act)() == ("done", 0.25)


def test_work_of_other_threads_counts_for_as_long_as_it_may_have_held_up_others() -> None:
    for busy, worked_s in ((1.5, 0.2), (0.25, 0.05)):
        process = Process(busy)
        begun = process.throttle.begin()
        process.clock.advance(0.2)
        assert process.throttle.worked_s(begun) == pytest.approx(worked_s)


def test_a_process_without_other_work_never_pauses() -> None:
    throttle = WorkThrottle()
    assert Deferred.fromCoroutine(throttle.rest(9.0)).called
    assert throttle.metered(lambda: 7)() == (7, 0.0)
    assert throttle.worked_s(throttle.begin()) == 0.0
