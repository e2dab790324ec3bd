"""The judge of retry times knows the rule, and sees every way of breaking it."""

from __future__ import annotations

import pytest

from benchmarks.retry_times import judge, windows

RULE = windows((1.0, 2.0), 7.0)
GOOD = (100.01, 101.05, 103.2, 105.3, 107.02)


def test_delays_are_summed_the_last_repeats_and_expiry_is_an_attempt_to_the_moment() -> None:
    assert [(round(least, 6), round(most, 6)) for least, most in RULE] == [(0, 0), (1, 1.1), (3, 3.3), (5, 5.5), (7, 7)]


def test_a_window_does_not_reach_beyond_expiry() -> None:
    assert windows((6.9,), 7.0) == [(0.0, 0.0), (6.9, 7.0), (7.0, 7.0)]


def test_attempts_in_their_windows_are_good() -> None:
    judged = judge({1: 100.0}, {(1, 0): GOOD}, RULE)
    assert judged.good
    assert judged.markdown().count("| good |") == 5


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("shift", [-0.4, 0.7])
def test_an_attempt_too_early_or_too_late_is_not_good(index: int, shift: float) -> None:
    times = list(GOOD)
    times[index] += shift
    judged = judge({1: 100.0}, {(1, 0): times}, RULE)
    assert not judged.good
    assert not judged.attempts[index].good


def test_one_attempt_more_or_less_is_not_good() -> None:
    assert not judge({1: 100.0}, {(1, 0): GOOD[:-1]}, RULE).good
    assert not judge({1: 100.0}, {(1, 0): (*GOOD, 109.0)}, RULE).good
    assert not judge({}, {}, RULE).good


def test_recipients_of_one_message_that_come_apart_are_not_good() -> None:
    apart = [at_s + 0.06 for at_s in GOOD]
    judged = judge({1: 100.0}, {(1, 0): GOOD, (1, 1): apart}, RULE)
    assert all(attempt.good for attempt in judged.attempts)
    assert judged.apart_s == pytest.approx(0.06)
    assert not judged.good


def test_messages_are_compared_with_their_own_arrival() -> None:
    later = [at_s + 50 for at_s in GOOD]
    assert judge({1: 100.0, 2: 150.0}, {(1, 0): GOOD, (2, 0): later}, RULE).good
