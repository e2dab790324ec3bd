"""Limits by destination: what is shared, what a reload changes, and how much is remembered."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mailismus.config.values.settings import DestinationSettings
from mailismus.deliver.limits import sets
from mailismus.deliver.limits.rate import SPAN_S
from mailismus.deliver.limits.sets import AT_ONCE, KEEP_S, SPREAD_S, START_S, DestinationLimits, LimitsOf, key_of
from tests.deliver.harness import deliver_settings

HOSTS = ("mx1.example", "mx2.example")


def limits_of(**changes: Any) -> LimitsOf:
    return LimitsOf(deliver_settings(**changes))


def destination(
    *domains: bytes, most: int | None = None, messages: int | None = None, recipients: int | None = None
) -> DestinationSettings:
    return DestinationSettings(domains, most, messages, recipients, 1)


def test_domains_with_the_same_hosts_share_window_and_rate() -> None:
    limits = limits_of(messages_per_minute=60)
    one = limits.hold(b"a.example", HOSTS, 25)
    other = limits.hold(b"b.example", tuple(reversed(HOSTS)), 25)
    assert one.window is other.window
    assert one.rate is not None
    assert one.rate is other.rate
    assert limits.hold(b"a.example", HOSTS, 26).window is not one.window
    assert limits.hold(b"a.example", HOSTS[:1], 25).window is not one.window
    assert key_of(("b", "a", "b"), 25) == (("a", "b"), 25)


def test_without_limits_there_is_no_rate_and_a_window_without_one() -> None:
    found = limits_of(maxserverconnections=0).hold(b"a.example", HOSTS, 25)
    assert (found.rate, found.server_limit, found.destination) == (None, None, None)
    for _ in range(1000):
        found.window.note_delivered(found.window.size)
    assert found.window.size > 20


def test_a_destination_has_one_rate_for_all_of_its_domains_and_the_windows_of_their_hosts() -> None:
    big = destination(b"mail.example", b"*.mail.example", most=5, messages=600)
    limits = limits_of(destinations=(big,), recipients_per_minute=9)
    one = limits.hold(b"mail.example", HOSTS, 25)
    other = limits.hold(b"a.Mail.example", ("mx.other.example",), 25)
    beside = limits.hold(b"b.example", HOSTS, 25)
    assert one.rate is not None
    assert one.rate is other.rate
    assert one.window is beside.window is not other.window
    assert one.rate.limits == (600, 9)
    assert beside.rate is not None
    assert beside.rate.limits == (0, 9)
    assert (one.server_limit, beside.server_limit) == (5, 20)
    assert (one.destination, beside.destination) == (big, None)


def test_mail_through_a_relay_has_the_limits_of_the_destination_with_its_patterns_also_after_a_reload() -> None:
    patterns = (b"slow.example", b"*.slow.example")
    destinations = (
        DestinationSettings(patterns, 5, 60, None, 1),
        DestinationSettings((b"relay.example",), 1, None, None, 2),
    )
    limits = limits_of(destinations=destinations)
    slow, others = limits.hold(b"", ("relay.example",), 25, patterns), limits.hold(b"", ("relay.example",), 25)
    assert slow.window is others.window
    assert (slow.server_limit, others.server_limit) == (5, 20)
    assert [bool(one.rate) for one in (slow, others)] == [True, False]
    limits.use(deliver_settings(destinations=(destination(*patterns, most=7),)))
    assert (slow.server_limit, bool(slow.rate)) == (7, False)
    limits.use(deliver_settings())
    assert slow.server_limit == 20


def test_what_a_destination_does_not_say_is_as_for_all_others() -> None:
    some = (destination(b"a.example", most=0), destination(b"b.example", messages=0))
    limits = limits_of(destinations=some, messages_per_minute=60)
    first, second = limits.hold(b"a.example", HOSTS, 25), limits.hold(b"b.example", HOSTS, 25)
    assert first.rate is limits.hold(b"c.example", HOSTS, 25).rate
    assert (first.server_limit, second.server_limit) == (None, 20)
    assert second.rate is None


def test_a_reload_is_followed_by_what_is_held_and_forgets_nothing_that_was_sent() -> None:
    limits = limits_of(messages_per_minute=60, destinations=(destination(b"b.example", messages=2),))
    one, other = limits.hold(b"a.example", HOSTS, 25), limits.hold(b"b.example", HOSTS, 25)
    for held in (one, other):
        assert held.rate is not None
        held.rate.note_sent(0.0, 1)
    window = one.window
    limits.use(deliver_settings(messages_per_minute=1, destinations=(destination(b"b.example", messages=1),)))
    for held in (one, other):
        assert held.rate is not None
        assert held.rate.limits == (1, 0)
        assert held.rate.next_at(0.0, 1) == SPAN_S
    assert one.window is window
    limits.use(deliver_settings(maxserverconnections=3))
    assert (one.rate, other.rate, other.server_limit, other.destination) == (None, None, 3, None)
    assert limits.hold(b"c.example", HOSTS, 25).window is window


def test_a_set_is_forgotten_when_nothing_has_held_it_for_a_while() -> None:
    limits = limits_of()
    held, other = limits.hold(b"a.example", HOSTS, 25), limits.hold(b"b.example", HOSTS, 25)
    window = held.window
    limits.release(held, 0.0)
    assert limits.forget_unused(KEEP_S * 9) == 0
    limits.release(other, 100.0)
    assert limits.forget_unused(100.0 + KEEP_S - 0.001) == 0
    again = limits.hold(b"a.example", HOSTS, 25)
    assert again.window is window
    limits.release(again, 200.0)
    assert limits.forget_unused(100.0 + KEEP_S) == 0
    assert limits.forget_unused(200.0 + KEEP_S) == 1
    assert len(limits) == 0
    assert limits.hold(b"a.example", HOSTS, 25).window is not window


def test_the_sets_unused_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "MAX_SETS", 3)
    limits = limits_of()
    windows = {}
    for number in range(5):
        held = limits.hold(b"a.example", (f"mx{number}",), 25)
        windows[number] = held.window
        limits.release(held, number)
    assert len(limits) == 3
    assert [limits.hold(b"a.example", (f"mx{number}",), 25).window is windows[number] for number in (4, 3, 2, 1)] == [
        True,
        True,
        True,
        False,
    ]
    assert len(limits) == 4  # what is held is kept


def test_what_has_sent_under_a_rate_is_kept_for_its_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "MAX_SETS", 2)
    limits = limits_of(messages_per_minute=1)
    for number in range(4):
        limits.release(limits.hold(b"a.example", (f"mx{number}",), 25), 100.0)
    assert len(limits) == 4
    last = limits.hold(b"a.example", ("mx9",), 25)
    limits.release(last, 100.0 + SPAN_S - 0.001)
    assert len(limits) == 5
    limits.release(limits.hold(b"a.example", ("mx9",), 25), 100.0 + SPAN_S)
    assert len(limits) == 2


def held_of_many(limits: LimitsOf, count: int, now: float) -> list[DestinationLimits]:
    return [limits.hold(b"a.example", (f"mx{now}.{number}",), 25, now=now) for number in range(count)]


def test_of_many_sets_that_begin_together_at_a_start_most_wait_for_a_random_time() -> None:
    chances = random.Random(1)
    limits = LimitsOf(deliver_settings(), chances.random)
    first = [one.window for one in held_of_many(limits, 300, 1000.0)]
    assert all(window.allows(0, 1000.0) for window in first[:AT_ONCE])
    opens_at = [window.opens_at(1000.0) or 0.0 for window in first[AT_ONCE:]]
    assert 1000.0 < min(opens_at) < 1000.0 + SPREAD_S / 10
    assert 1000.0 + SPREAD_S * 9 / 10 < max(opens_at) <= 1000.0 + SPREAD_S
    assert not any(window.allows(0, 1000.0) for window in first[AT_ONCE:])
    assert all(window.allows(0, 1000.0 + SPREAD_S) for window in first)
    assert all(one.window.allows(0, 1002.0) for one in held_of_many(limits, 300, 1000.0 + START_S))


def test_a_start_with_few_sets_lets_none_wait() -> None:
    limits = LimitsOf(deliver_settings(), lambda: 1.0)
    assert all(one.window.allows(0, 5.0) for one in held_of_many(limits, AT_ONCE, 5.0))


def test_after_an_outage_windows_without_sessions_begin_anew_each_at_its_own_time() -> None:
    limits = LimitsOf(deliver_settings(), random.Random(1).random)
    held = held_of_many(limits, AT_ONCE + 50, 0.0)
    for one in held:
        one.window.begin_anew(0.0)
        one.window.note_delivered(1)
    held[-1].mx_set.stands()
    limits.begin_anew(100.0)
    assert [one.window.size for one in held] == [1] * (AT_ONCE + 49) + [2]
    assert all(one.window.allows(0, 100.0) for one in [*held[:AT_ONCE], held[-1]])
    assert len({one.window.opens_at(100.0) for one in held[AT_ONCE:-1]}) == 49
    assert not any(one.window.allows(0, 100.0) for one in held[AT_ONCE:-1])


def test_each_window_has_a_chance_of_its_own() -> None:
    chances = iter((0.0, 1.0))
    limits = LimitsOf(deliver_settings(), lambda: next(chances))
    ends = []
    for name in ("mx1", "mx2"):
        window = limits.hold(b"a.example", (name,), 25).window
        window.note_cut(0.0, -1.0)
        ends.append(window.opens_at(0.0))
    assert ends == [5.0, 5.5]


def test_windows_of_another_process_are_taken_over() -> None:
    limits, other = limits_of(), limits_of()
    held = limits.hold(b"b.example", ["mx.b.example"], 25)
    limits.hold(b"c.example", ["mx.c.example"], 25)
    held.window.note_cut(10.0, 5.0)
    told = list(limits.windows(11.0))
    assert [key for key, _ in told] == [held.mx_set.key]
    for key, state in told:
        other.adopt(key, state, 100.0)
        other.adopt(key, state._replace(size=9), 100.0)  # it is known now
    found = other.hold(b"b.example", ["MX.b.example".lower()], 25)
    assert found.window.state(100.0) == held.window.state(11.0)
