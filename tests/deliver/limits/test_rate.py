"""Rates: never more in a minute, evenly, and held against a slow plain model."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.limits.rate import SPAN_S, Meter, Rate

GAPS = st.one_of(
    st.just(0.0), st.floats(0.0, 3.0), st.floats(0.0, 90.0), st.sampled_from([0.5, 1.0, 60.0, SPAN_S / 60, SPAN_S])
)
BEGINS = st.one_of(st.just(0.0), st.floats(0.0, 1e7))


def most_in_a_minute(sent: list[tuple[float, int]]) -> int:
    """The most units within any 60 s, both ends included."""
    most = units = first = 0
    for at, n in sent:
        units += n
        while sent[first][0] + 60.0 < at:
            units -= sent[first][1]
            first += 1
        most = max(most, units)
    return most


@attrs.define
class PlainMeter:
    """The same rule without a memory bound: every send is kept."""

    limit: int
    sent: list[tuple[float, int]] = attrs.Factory(list)
    paid_at: float = -math.inf

    def may_send(self, now: float, units: int) -> bool:
        counted = sum(n for at, n in self.sent if math.floor(at * 2) / 2 + SPAN_S > now)
        allowance_s = (max(1, self.limit // 60) - 1) * (SPAN_S / self.limit)
        return now >= self.paid_at - allowance_s and (counted + units <= self.limit or not counted)

    def note_sent(self, now: float, units: int) -> None:
        self.sent.append((now, units))
        self.paid_at = max(self.paid_at, now) + units * (SPAN_S / self.limit)


@given(BEGINS, st.integers(1, 40), st.integers(0, 40), st.lists(st.tuples(GAPS, st.integers(1, 40)), max_size=80))
def test_no_minute_ever_sees_more_whenever_the_mail_comes(
    now: float, messages: int, recipients: int, arrivals: list[tuple[float, int]]
) -> None:
    rate = Rate(messages, recipients)
    sent: list[tuple[float, int]] = []
    for gap, wanted in arrivals:
        now += gap
        units = min(wanted, rate.most_recipients(0) or wanted)
        if rate.may_send(now, units):
            rate.note_sent(now, units)
            sent.append((now, units))
    assert most_in_a_minute([(at, 1) for at, _ in sent]) <= messages
    assert not recipients or most_in_a_minute(sent) <= recipients


@given(
    BEGINS,
    st.integers(1, 200),
    st.lists(st.tuples(GAPS, st.integers(1, 60), st.one_of(st.none(), st.integers(1, 200))), max_size=60),
)
def test_it_is_the_plain_rule(now: float, limit: int, steps: list[tuple[float, int, int | None]]) -> None:
    meter, plain = Meter(limit), PlainMeter(limit)
    for gap, units, other in steps:
        now += gap
        if other is not None:
            meter.use_limit(other)
            plain.limit = other
        at = meter.next_at(now, units)
        assert meter.may_send(now, units) == plain.may_send(now, units) == (at == now)
        assert plain.may_send(at, units)
        if at > now:
            assert not plain.may_send(max(now, math.nextafter(at, 0.0)), units)
        else:
            meter.note_sent(now, units)
            plain.note_sent(now, units)


@pytest.mark.parametrize("limit", [1, 2, 7, 59, 60, 61, 120, 600, 6000])
@pytest.mark.parametrize("late_s", [0.0, 0.003])
def test_who_always_waits_loses_next_to_nothing_and_sends_evenly(limit: int, late_s: float) -> None:
    rate = Rate(limit, 0)
    now = 1234.567
    sent: list[float] = []
    while now < 1234.567 + 10 * SPAN_S:
        now = rate.next_at(now, 1)
        now += late_s if sent and now > sent[-1] else 0.0
        assert rate.may_send(now, 1)
        rate.note_sent(now, 1)
        sent.append(now)
    assert most_in_a_minute([(at, 1) for at in sent]) <= limit
    assert len(sent) >= 10 * limit * 0.98
    burst = max(1, limit // 60)
    assert all(later - at > 0.97 for at, later in zip(sent, sent[2 * burst :], strict=False))


@pytest.mark.parametrize(("limit", "maxrecips", "most"), [(60, 50, 30), (600, 50, 50), (10, 50, 10), (7, 3, 2), (61, 0, 61)])
def test_transactions_are_cut_so_that_they_fill_a_minute(limit: int, maxrecips: int, most: int) -> None:
    rate = Rate(0, limit)
    assert rate.most_recipients(maxrecips) == most
    now, sent = 0.0, 0
    while now <= 10 * SPAN_S:
        now = rate.next_at(now, most)
        rate.note_sent(now, most)
        sent += most
    assert sent >= 10 * (limit - limit % most) * 0.98


def test_without_a_limit_of_recipients_transactions_are_as_they_were() -> None:
    assert [Rate(5, 0).most_recipients(maxrecips) for maxrecips in (0, 50)] == [0, 50]


def test_the_next_one_may_go_when_the_last_is_paid_for_and_not_before() -> None:
    rate = Rate(60, 0)
    rate.note_sent(100.0, 1)
    at = rate.next_at(100.0, 1)
    assert at == 100.0 + SPAN_S / 60
    assert not rate.may_send(math.nextafter(at, 0.0), 1)
    assert rate.may_send(at, 1)


def test_both_limits_count() -> None:
    rate = Rate(60, 6)
    rate.note_sent(0.0, 3)
    assert rate.next_at(0.0, 3) == pytest.approx(3 * SPAN_S / 6)
    rate = Rate(2, 600)
    rate.note_sent(0.0, 1)
    assert rate.next_at(0.0, 1) == SPAN_S / 2


def test_what_is_larger_than_a_minute_goes_alone_and_pays() -> None:
    meter = Meter(10)
    meter.note_sent(0.0, 1)
    assert not meter.may_send(60.9, 25)
    assert meter.next_at(60.9, 25) == SPAN_S
    meter.note_sent(SPAN_S, 25)
    assert meter.next_at(SPAN_S, 1) == pytest.approx(SPAN_S + 2.5 * SPAN_S)


def test_another_limit_counts_what_was_sent_before() -> None:
    rate = Rate(0, 100)
    rate.note_sent(0.0, 50)
    rate.use_limits(0, 40)
    assert rate.next_at(0.0, 1) == SPAN_S
    rate.use_limits(0, 0)
    assert rate.may_send(0.0, 10_000)
    assert rate.limits == (0, 0)
    rate.use_limits(3, 0)
    rate.note_sent(1.0, 1)
    assert not rate.may_send(1.0, 1)


def test_memory_is_bounded_by_time_not_by_mail() -> None:
    meter = Meter(10**9)
    for number in range(100_000):
        meter.note_sent(number * 0.01, 1)
        assert meter.may_send(number * 0.01, 1)
    assert len(meter._slots) <= 2 * SPAN_S + 1
