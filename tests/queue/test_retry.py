"""The retry rule as a table, and what holds whatever the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import RetryClass
from mailismus.queue.outcome.retry import (
    SHORTEST_WAIT_S,
    SOON_ATTEMPTS,
    RetryRule,
    age_by_attempts_s,
    lengthening_of,
    longest_wait_s,
    next_attempt_at,
)

SHORT = RetryRule((1.0, 2.0), 7.0)
USUAL = RetryRule((900.0, 1800.0, 7200.0, 14400.0), 72 * 3600.0)
ARRIVAL = 1_700_000_000.0
USUAL_CLASS, GREYLISTING, QUOTA = RetryClass.USUAL, RetryClass.GREYLISTING, RetryClass.QUOTA


def next_of(
    rule: RetryRule,
    *,
    received_at: float = ARRIVAL,
    attempts: int,
    made_at: float | None,
    now: float,
    lengthening: float = 0.0,
    known_for_s: float | None = None,
    retry: RetryClass = USUAL_CLASS,
) -> float | None:
    """The rule, asked with times of day."""
    return next_attempt_at(
        rule,
        age_s=now - received_at,
        made_age_s=None if made_at is None else made_at - received_at,
        attempts=attempts,
        now=now,
        lengthening=lengthening,
        known_for_s=known_for_s,
        retry=retry,
    )


def attempts_of(rule: RetryRule, lengthening: float, attempt_s: float = 0.0) -> list[float]:
    """When attempts are made, after arrival, if each takes `attempt_s` and fails."""
    made = [0.0]
    while True:
        next_at = next_of(
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
    next_at = next_of(SHORT, received_at=ARRIVAL, attempts=4, made_at=ARRIVAL + 5.5, now=ARRIVAL + 9, lengthening=0.0)
    assert next_at == ARRIVAL + 9


def test_one_made_late_is_the_last() -> None:
    made_at = ARRIVAL + 100
    assert next_of(SHORT, received_at=ARRIVAL, attempts=1, made_at=made_at, now=made_at, lengthening=0.0) is None


def test_times_rounded_to_milliseconds_make_no_further_attempt() -> None:
    made_at = round(ARRIVAL + 6.9994, 3)
    assert next_of(SHORT, received_at=ARRIVAL + 0.0004, attempts=5, made_at=made_at, now=made_at, lengthening=0.0) is None


def test_an_attempt_that_does_not_count_expires_nothing_and_is_followed_by_another_after_the_delay() -> None:
    now = ARRIVAL + 1e6
    assert next_of(SHORT, attempts=1, made_at=None, now=now) == now + 1
    assert next_of(SHORT, attempts=2, made_at=None, now=now) == now + 2
    assert next_of(SHORT, attempts=3, made_at=now, now=now) is None


@pytest.mark.parametrize(("known_for_s", "wait_s"), [(1.5, 1.5), (60.0, 2.0), (float("inf"), 2.0), (0.0, SHORTEST_WAIT_S)])
def test_what_is_over_its_time_waits_no_longer_than_a_host_is_known_to_be_dead(known_for_s: float, wait_s: float) -> None:
    now = ARRIVAL + 1e6
    assert next_of(SHORT, attempts=2, made_at=None, now=now, known_for_s=known_for_s) == now + wait_s


def test_what_is_in_its_time_waits_as_usual_however_long_a_host_is_known_to_be_dead() -> None:
    assert next_of(SHORT, attempts=2, made_at=None, now=ARRIVAL + 1, known_for_s=0.1) == ARRIVAL + 3
    assert next_of(SHORT, attempts=5, made_at=None, now=ARRIVAL + 6, known_for_s=0.1) == ARRIVAL + 7


def test_a_message_is_as_old_as_its_attempts_make_it() -> None:
    assert [age_by_attempts_s(SHORT, attempts) for attempts in range(1, 6)] == [0, 1, 2, 3, 5]  # greylisting, three times


def test_the_longest_wait_is_that_of_the_attempt() -> None:
    assert [longest_wait_s(SHORT, attempts) for attempts in range(4)] == pytest.approx([1.1, 1.1, 2.2, 2.2])


def test_without_maxtime_nothing_expires() -> None:
    rule = RetryRule((1.0,), 0.0)
    now = ARRIVAL + 1e9
    assert next_of(rule, received_at=ARRIVAL, attempts=10_000, made_at=now, now=now, lengthening=0.0) == now + 1


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
    next_at = next_of(rule, received_at=ARRIVAL, attempts=attempts, made_at=now, now=now, lengthening=lengthening)
    if next_at is None:
        assert now >= ARRIVAL + maxtime_s - 0.01
        return
    delay_s = delays[min(attempts, len(delays)) - 1]
    assert now <= next_at <= ARRIVAL + maxtime_s + 0.001
    assert next_at <= now + delay_s * 1.1 + 0.001
    assert next_at >= min(now + delay_s, ARRIVAL + maxtime_s) - 0.001


@pytest.mark.parametrize(
    ("retry", "waits_s"),
    [
        (USUAL_CLASS, [900, 1800, 7200, 14400, 14400]),
        (GREYLISTING, [900, 900, 900, 14400, 14400]),
        (QUOTA, [14400] * 5),
    ],
)
def test_each_class_has_its_delays(retry: RetryClass, waits_s: list[float]) -> None:
    now = ARRIVAL + 10
    for attempts, wait_s in enumerate(waits_s, 1):
        assert next_of(USUAL, attempts=attempts, made_at=now, now=now, retry=retry) == now + wait_s
        longest = next_of(USUAL, attempts=attempts, made_at=now, now=now, retry=retry, lengthening=1.0)
        assert longest == pytest.approx(now + wait_s * 1.1)


@given(
    delays=st.lists(st.floats(0.1, 1e5), min_size=1, max_size=5),
    maxtime_s=st.one_of(st.just(0.0), st.floats(0.1, 1e6)),
    attempts=st.integers(1, 50),
    waited_s=st.floats(0, 2e6),
    lengthening=st.floats(0, 1),
    retry=st.sampled_from(RetryClass),
)
def test_a_class_chooses_a_delay_of_the_list_and_changes_nothing_else(
    delays: list[float], maxtime_s: float, attempts: int, waited_s: float, lengthening: float, retry: RetryClass
) -> None:
    now = ARRIVAL + waited_s
    usual = next_of(RetryRule(tuple(delays), maxtime_s), attempts=attempts, made_at=now, now=now, lengthening=lengthening)
    chosen = delays[min(attempts, len(delays)) - 1]
    if retry is QUOTA:
        chosen = delays[-1]
    elif retry is GREYLISTING and attempts <= 3:
        chosen = delays[0]
    found = next_of(
        RetryRule(tuple(delays), maxtime_s), attempts=attempts, made_at=now, now=now, lengthening=lengthening, retry=retry
    )
    same = next_of(RetryRule((chosen,), maxtime_s), attempts=attempts, made_at=now, now=now, lengthening=lengthening)
    assert found == same
    assert (found is None) == (usual is None)  # expiry is the same in every class


@given(
    delays=st.lists(st.floats(0.1, 1e5), min_size=1, max_size=5),
    classes=st.lists(st.sampled_from(RetryClass), max_size=20),
    lengthening=st.floats(0, 1),
)
def test_whatever_the_failures_were_a_message_is_no_younger_and_greylisting_is_hurried_three_times(
    delays: list[float], classes: list[RetryClass], lengthening: float
) -> None:
    rule = RetryRule(tuple(sorted(delays)), 0.0)
    now, soon = ARRIVAL, 0
    for attempts, retry in enumerate(classes, 1):
        next_at = next_of(rule, attempts=attempts, made_at=now, now=now, lengthening=lengthening, retry=retry)
        assert next_at is not None
        usual_s = rule.delays_s[min(attempts, len(delays)) - 1]
        soon += retry is GREYLISTING and rule.delays_s[0] * 1.1 < usual_s and next_at - now < usual_s - 0.001
        now = next_at
        assert now - ARRIVAL >= age_by_attempts_s(rule, attempts + 1) - 0.01
    assert soon <= SOON_ATTEMPTS - 1


def test_the_lengthening_is_spread_evenly_and_the_same_for_all_recipients() -> None:
    drawn = [lengthening_of(SpoolId((3 << 32) + number), 1, 0) for number in range(4000)]
    assert all(0 <= one < 1 for one in drawn)
    tenths = [sum(tenth / 10 <= one < (tenth + 1) / 10 for one in drawn) for tenth in range(10)]
    assert min(tenths) > 320
    assert lengthening_of(SpoolId(5), 1, 7) == lengthening_of(SpoolId(5), 1, 7)
    assert len({lengthening_of(SpoolId(5), attempts, 7) for attempts in range(100)}) == 100
    assert lengthening_of(SpoolId(5), 1, 7) != lengthening_of(SpoolId(5), 1, 8)
