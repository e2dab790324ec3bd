"""The retry rule as a table, and what holds whatever the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.queue.retry import RetryRule, lengthening_of, next_attempt_at

SHORT = RetryRule((1.0, 2.0), 7.0)
USUAL = RetryRule((900.0, 1800.0, 7200.0, 14400.0), 72 * 3600.0)
ARRIVAL = 1_700_000_000.0


def attempts_of(rule: RetryRule, lengthening: float, attempt_s: float = 0.0) -> list[float]:
    """When attempts are made, after arrival, if each takes `attempt_s` and fails."""
    made = [0.0]
    while True:
        next_at = next_attempt_at(
            rule,
            received_at=ARRIVAL,
            attempts=len(made),
            made_at=ARRIVAL + made[-1],
            now=ARRIVAL + made[-1] + attempt_s,
            lengthening=lengthening,
        )
        if next_at is None:
            return made
        made.append(next_at - ARRIVAL)
        assert len(made) < 1000


@pytest.mark.parametrize(
    ("lengthening", "expected"),
    [(0.0, [0, 1, 3, 5, 7]), (1.0, [0, 1.1, 3.3, 5.5, 7]), (0.5, [0, 1.05, 3.15, 5.25, 7])],
)
def test_one_second_and_two_until_seven_make_five_attempts(lengthening: float, expected: list[float]) -> None:
    assert attempts_of(SHORT, lengthening) == pytest.approx(expected, abs=1e-5)


def test_the_usual_delays_for_three_days() -> None:
    attempts = [moment / 3600 for moment in attempts_of(USUAL, 0.0)]
    assert attempts[:6] == pytest.approx([0, 0.25, 0.75, 2.75, 6.75, 10.75])
    assert attempts[-2:] == pytest.approx([70.75, 72])


def test_an_attempt_that_would_fall_exactly_at_the_end_is_the_last() -> None:
    assert attempts_of(RetryRule((7.0,), 7.0), 0.0) == pytest.approx([0, 7])
    assert attempts_of(RetryRule((6.9,), 7.0), 0.0) == pytest.approx([0, 6.9, 7], abs=1e-5)
    assert attempts_of(RetryRule((100.0,), 7.0), 0.0) == pytest.approx([0, 7])


def test_the_delay_counts_from_the_failure() -> None:
    assert attempts_of(SHORT, 0.0, attempt_s=0.5) == pytest.approx([0, 1.5, 4, 6.5, 7], abs=1e-5)


def test_an_attempt_that_hangs_beyond_the_end_is_followed_by_a_last_one_at_once() -> None:
    next_at = next_attempt_at(
        SHORT, received_at=ARRIVAL, attempts=4, made_at=ARRIVAL + 5.5, now=ARRIVAL + 9, lengthening=0.0
    )
    assert next_at == ARRIVAL + 9


def test_one_made_late_is_the_last() -> None:
    made_at = ARRIVAL + 100
    assert next_attempt_at(SHORT, received_at=ARRIVAL, attempts=1, made_at=made_at, now=made_at, lengthening=0.0) is None


def test_times_rounded_to_milliseconds_make_no_further_attempt() -> None:
    made_at = round(ARRIVAL + 6.9994, 3)
    assert (
        next_attempt_at(SHORT, received_at=ARRIVAL + 0.0004, attempts=5, made_at=made_at, now=made_at, lengthening=0.0)
        is None
    )


def test_nothing_expires_by_an_attempt_made_before_the_clock_jumped() -> None:
    now = ARRIVAL + 1e6
    assert next_attempt_at(SHORT, received_at=ARRIVAL, attempts=1, made_at=None, now=now, lengthening=0.0) == now
    assert next_attempt_at(SHORT, received_at=ARRIVAL, attempts=2, made_at=now, now=now, lengthening=0.0) is None


def test_what_arrived_by_a_wrong_clock_expires_by_its_attempts() -> None:
    arrived, now = ARRIVAL + 1e7, ARRIVAL
    nexts = [
        next_attempt_at(SHORT, received_at=arrived, attempts=n, made_at=now, now=now, lengthening=0.0) for n in range(1, 7)
    ]
    assert nexts == [now + 1, now + 2, now + 2, now + 2, None, None]


def test_without_maxtime_nothing_expires() -> None:
    rule = RetryRule((1.0,), 0.0)
    now = ARRIVAL + 1e9
    assert next_attempt_at(rule, received_at=ARRIVAL, attempts=10_000, made_at=now, now=now, lengthening=0.0) == now + 1


@given(
    delays=st.lists(st.floats(0.1, 1e5), min_size=1, max_size=5),
    maxtime_s=st.floats(0.1, 1e6),
    attempts=st.integers(1, 50),
    waited_s=st.floats(0, 2e6),
    lengthening=st.floats(0, 1),
)
def test_no_attempt_is_early_or_beyond_the_end(
    delays: list[float], maxtime_s: float, attempts: int, waited_s: float, lengthening: float
) -> None:
    rule = RetryRule(tuple(delays), maxtime_s)
    now = ARRIVAL + waited_s
    next_at = next_attempt_at(rule, received_at=ARRIVAL, attempts=attempts, made_at=now, now=now, lengthening=lengthening)
    if next_at is None:
        assert now >= ARRIVAL + maxtime_s - 0.01
        return
    delay_s = delays[min(attempts, len(delays)) - 1]
    assert now <= next_at <= ARRIVAL + maxtime_s + 0.001
    assert next_at <= now + delay_s * 1.1 + 0.001
    assert next_at >= min(now + delay_s, ARRIVAL + maxtime_s) - 0.001


def test_the_lengthening_is_spread_evenly_and_the_same_for_all_recipients() -> None:
    drawn = [lengthening_of(SpoolId((3 << 32) + number), 1, 0) for number in range(4000)]
    assert all(0 <= one < 1 for one in drawn)
    tenths = [sum(tenth / 10 <= one < (tenth + 1) / 10 for one in drawn) for tenth in range(10)]
    assert min(tenths) > 320
    assert lengthening_of(SpoolId(5), 1, 7) == lengthening_of(SpoolId(5), 1, 7)
    assert len({lengthening_of(SpoolId(5), attempts, 7) for attempts in range(100)}) == 100
    assert lengthening_of(SpoolId(5), 1, 7) != lengthening_of(SpoolId(5), 1, 8)
