"""What the loads on the scheduler make of their figures: each verdict can fail."""

from __future__ import annotations

import math

import attrs
import pytest

from benchmarks.scheduler import beside, caps, envelope, killed, pipelining, sick
from benchmarks.scheduler.bed import deferrals
from benchmarks.scheduler.cases import CASES
from benchmarks.scheduler.checks import Check, Played, Small, at_least, at_most, compare, none_of, small_of
from benchmarks.scheduler.events import (
    Event,
    Span,
    grown_at,
    mean_recipients,
    median_open,
    most_within,
    parse_events,
    parse_questions,
    peak,
    spans,
)
from benchmarks.scheduler.world import CAPPED, REFUSING, TARPIT, hosts, parse_table, table, zone


def small(p95_s: float, missing: int = 0) -> Small:
    return Small((0.001,) * 18 + (p95_s, p95_s), missing)


def is_good(checks: list[Check]) -> bool:
    return all(check.good for check in checks)


def transaction(
    at_s: float, end_s: float, connection: int = 1, recipients: int = 1, sender: str = "s", ip: str = "a"
) -> list[Event]:
    return [
        Event(at_s, ip, connection, "mail", sender),
        Event(end_s, ip, connection, "dot", sender, recipients, "r@d"),
    ]


# Events


def test_a_line_of_the_sink_is_read_as_it_was_written() -> None:
    written = [
        Event(1.5, "127.1.0.1", 7, "open"),
        *transaction(2.0, 3.25, 7, 10, "a@b.example"),
        Event(4.0, "127.1.0.1", 7, "close"),
    ]
    data = b"".join(event.line() for event in written)
    assert parse_events(data) == written
    assert parse_events(data[:-3]) == written[:-1]


def test_the_first_question_for_a_name_counts() -> None:
    assert parse_questions(b"1.5 d.example MX\n2.5 d.example MX\n3 e.exam") == {"d.example": 1.5}


def test_connections_are_counted_from_the_greeting_to_the_end() -> None:
    events = [
        *(Event(0.0, "a", 1, "open"), Event(1.0, "a", 2, "open"), Event(2.0, "a", 1, "close")),
        *(Event(2.5, "a", 3, "refused"), Event(3.0, "a", 4, "open"), Event(5.0, "a", 4, "close")),
    ]
    found = spans(events)
    assert sorted((span.begin_s, span.end_s) for span in found) == [(0.0, 2.0), (1.0, math.inf), (3.0, 5.0)]
    assert peak(found) == 2
    assert median_open(found, 1.0, 2.0) == 2
    assert median_open(found, 2.0, 3.0) == 1


def test_a_connection_without_work_is_not_held_by_an_envelope() -> None:
    events = [Event(0.0, "a", 1, "open"), *transaction(0.5, 1.0), Event(9.0, "a", 1, "close")]
    assert spans(events, until_last_dot=True) == [Span(0.0, 1.0)]
    assert spans([*events[:2], Event(8.0, "b", 2, "open")], until_last_dot=True)[0] == Span(0.0, math.inf)


def test_growth_counts_from_the_moment_asked_about() -> None:
    found = [Span(0.0, 9.0), Span(2.0, 9.0), Span(5.0, 6.0)]
    assert grown_at(found, 2, 1.0) == 1.0
    assert grown_at(found, 2, 3.0) == 0.0
    assert grown_at(found, 3, 3.0) == 2.0
    assert grown_at(found, 4, 0.0) == math.inf


def test_the_most_in_a_span_of_any_position() -> None:
    assert most_within([0.0, 59.0, 60.0, 61.0], 60.0) == 3
    assert most_within([0.0, 60.0], 60.0) == 1
    assert most_within([], 60.0) == 0


def test_recipients_of_a_transaction() -> None:
    assert mean_recipients([*transaction(0, 1, recipients=10), *transaction(1, 2, recipients=5)]) == 7.5
    assert mean_recipients([]) == 0


# Checks


def test_limits_themselves_are_good_and_more_is_not() -> None:
    assert at_most("x", 5, 5).good
    assert not at_most("x", 5.01, 5).good
    assert at_least("x", 5, 5).good
    assert not at_least("x", 4.99, 5).good
    assert none_of("x", []).good
    assert not none_of("x", ["y"]).good


def test_a_fifth_more_or_twenty_milliseconds_pass() -> None:
    assert compare("x", [small(0.010)], [small(0.030)], 1.2).good
    assert not compare("x", [small(0.010)], [small(0.031)], 1.2).good
    assert compare("x", [small(1.0)], [small(1.2)], 1.2).good
    assert not compare("x", [small(1.0)], [small(1.3)], 1.2).good


def test_small_messages_that_do_not_arrive_are_not_good() -> None:
    assert not compare("x", [small(0.01)], [small(0.01, missing=3)], 2).good
    assert not compare("x", [], [small(0.01)], 2).good
    assert not compare("x", [small(0.01)], [], 2).good
    assert small_of([("a", 1.0), ("b", 2.0)], {"a": 1.5}) == Small((0.5,), 1)


def test_a_load_that_promises_nothing_is_not_good() -> None:
    assert not Played((), []).good
    assert Played((), [at_most("x", 1, 1)]).good
    assert "**not good**: x <= 1: 2" in Played(["note"], [at_most("x", 2, 1)]).text()


# World


def test_hosts_that_refuse_are_in_the_zone_and_not_at_the_sink() -> None:
    known = [*hosts("dead", 1, 1, REFUSING), *hosts("slow", 2, 251, TARPIT)]
    behaviours = parse_table(table(known))
    assert len(behaviours) == 251
    assert behaviours["127.2.1.1"] == TARPIT
    lines = zone(known, ["silent.example"]).splitlines()
    assert "dead0.load.example MX 10 mx.dead0.load.example" in lines
    assert "mx.dead0.load.example A 127.1.0.1" in lines
    assert lines[-1] == "silent.example * !drop"


def test_every_load_has_a_name_and_says_what_it_is_about() -> None:
    assert len(CASES) == 13
    assert all(case.about and case.runs > 0 for case in CASES.values())


# Sick hosts

SICK = sick.Run(True, small(0.010), (100, 104), {"127.1.0.1": 25}, 0.0)
WITHOUT = sick.Run(False, small(0.010), (100, 100), {}, 0.0)


def test_sick_hosts_that_cost_nothing_are_good() -> None:
    assert is_good(sick.judge([WITHOUT, SICK]))


@pytest.mark.parametrize(
    "change", [{"small": small(0.035)}, {"pss": (100, 106)}, {"tries": {"127.1.0.1": 1, "127.1.0.2": 26}}], ids=str
)
def test_sick_hosts_that_cost_something_are_not_good(change: dict[str, object]) -> None:
    assert not is_good(sick.judge([WITHOUT, attrs.evolve(SICK, **change)]))  # type: ignore[arg-type]  # by name


def test_failed_tries_are_counted_as_server_and_sink_say() -> None:
    line = "2026-11-22T20:00:%02d+0000 [x] No session with mx.d.example[127.9.0.1]:25: 451 4.4.1 connect to x failed\n"
    log = "".join(line % second for second in (0, 30, 59)) + (line % 0).replace("20:00", "20:01")
    refused = [Event(float(second), "127.9.0.2", second, "refused") for second in range(4)]
    assert sick.failed_tries(log, refused) == {"127.9.0.1": 3, "127.9.0.2": 4}


# Small messages beside a load


def test_small_messages_beside_a_load() -> None:
    alone = beside.Run(False, small(0.010), (), 0.0)
    beside_it = beside.Run(True, small(0.030), (), 0.0)
    assert is_good(beside.judge([alone, beside_it]))
    assert not is_good(beside.judge([alone, attrs.evolve(beside_it, small=small(0.031))]))
    assert not is_good(beside.judge([alone, attrs.evolve(beside_it, lost=("r@d: 451",))]))


def test_an_attempt_at_a_silent_domain_is_lost_only_if_nobody_asked_for_it() -> None:
    log = (
        "x [mail] 1: to=<r@silent.example>, relay=none, delay=5, dsn=4.4.3, status=deferred (451 4.4.3 no answer)\n"
        "x [mail] 1: to=<r@well.example>, relay=x, dsn=4.4.1, status=deferred (451 4.4.1 (refused))\n"
        "x [mail] 1: to=<r@done.example>, relay=x, dsn=2.0.0, status=sent (250 ok)\n"
    )
    found = deferrals(log)
    assert found == [("r@silent.example", "451 4.4.3 no answer"), ("r@well.example", "451 4.4.1 (refused)")]
    silent = frozenset({"silent.example"})
    assert beside.lost_attempts(found, silent, {"silent.example": 1.0}) == ("r@well.example: 451 4.4.1 (refused)",)
    assert len(beside.lost_attempts(found, silent, {})) == 2


# Envelopes

MEASURED = envelope.Measured(
    envelope.Phase(10.0, (160.0,)), envelope.Phase(10.0, (80.0, 104.0)), 9.0, small(0.01), small(0.03), small(0.03), 200, 0.0
)


def test_envelopes_that_share_are_good() -> None:
    assert is_good(envelope.judge(MEASURED))


@pytest.mark.parametrize(
    "change",
    [
        {"first": envelope.Phase(10.0, (159.0,))},
        {"both": envelope.Phase(10.0, (79.0, 100.0))},
        {"both": envelope.Phase(10.0, (90.0, 105.0))},
        {"both": envelope.Phase(2.0, (90.0, 90.0))},
        {"recipients": 8.9},
        {"one": small(0.031)},
        {"two": small(0.031)},
        {"two": small(0.01, missing=3)},
    ],
    ids=str,
)
def test_envelopes_that_do_not_share_are_not_good(change: dict[str, object]) -> None:
    assert not is_good(envelope.judge(attrs.evolve(MEASURED, **change)))  # type: ignore[arg-type]  # by name


def test_connections_of_an_envelope_count_while_enough_of_it_waits() -> None:
    events = [
        *(Event(0.0, "a", 1, "open"), Event(0.0, "b", 2, "open")),
        *transaction(0.1, 4.0, 1, 60, "one"),
        *transaction(0.2, 9.0, 2, 10, "two", "b"),
    ]
    events.sort(key=lambda event: event.at_s)
    assert envelope.waits_until(events[:3], 100, 50) == 0.1
    assert envelope.phase(events, ["one"], 100, 30, (1.0, 9.0)) == envelope.Phase(3.0, (1,))
    assert envelope.phase(events, ["one"], 100, 50, (1.0, 9.0)) == envelope.Phase(3.0, (1,))
    assert envelope.phase(events, ["one", "two"], 100, 95, (1.0, 9.0)) == envelope.Phase(3.0, (1, 1))
    assert envelope.phase(events, ["one"], 100, 50, (5.0, 9.0)) == envelope.Phase(0.0, (0,))


# Caps


def test_domains_share_their_host() -> None:
    assert is_good(caps.judge_shared(20, 20))
    assert not is_good(caps.judge_shared(20, 21))
    assert not is_good(caps.judge_shared(1, 1))


@pytest.mark.parametrize("change", [{"refused": 11}, {"taken": 0.79}, {"grown_s": 61.0}, {"grown_s": math.inf}], ids=str)
def test_a_cap_that_is_not_found_or_not_forgotten_is_not_good(change: dict[str, float]) -> None:
    good = caps.Capped(10, 0.8, 60.0)
    assert is_good(caps.judge_cap(good))
    assert not is_good(caps.judge_cap(attrs.evolve(good, **change)))  # type: ignore[arg-type]  # by name


def test_figures_of_a_cap() -> None:
    events = [Event(0.0, "a", 1, "open"), Event(0.5, "a", 2, "refused")]
    events += [event for second in range(1, 9) for event in transaction(second - 0.5, float(second))]
    events += [Event(11.0 + number / 10, "a", 10 + number, "open") for number in range(19)]
    found = caps.capped(events, 0.0, 10.0)
    assert found.refused == 1
    assert found.taken == pytest.approx(8 / 75)
    assert found.grown_s == pytest.approx(2.8)


def test_sixty_one_messages_in_a_minute_are_not_good_and_none_are_neither() -> None:
    assert is_good(caps.judge_rate(60, 0.8))
    assert not is_good(caps.judge_rate(61, 1.0))
    assert not is_good(caps.judge_rate(10, 0.2))


# Pipelining


def test_a_kept_connection_has_to_be_one_and_quick() -> None:
    single = pipelining.Sending(200, 200, 200 * 0.020 * 4)
    assert is_good(pipelining.judge(pipelining.Sending(200, 1, 200 * 0.020 * 1.25), single))
    assert not is_good(pipelining.judge(pipelining.Sending(200, 1, 200 * 0.020 * 1.3), single))
    assert not is_good(pipelining.judge(pipelining.Sending(200, 2, 200 * 0.020), single))
    assert not is_good(pipelining.judge(pipelining.Sending(200, 1, 200 * 0.020), attrs.evolve(single, connections=100)))
    slow = attrs.evolve(single, seconds=200 * 0.020 * 2.9)
    assert not is_good(pipelining.judge(pipelining.Sending(200, 1, 200 * 0.020), slow))


def test_round_trips_count_from_the_first_mail_to_the_last_reply() -> None:
    events = [Event(0.0, "a", 1, "open"), *transaction(1.0, 1.5), *transaction(1.5, 1.98)]
    assert pipelining.sending(events) == pipelining.Sending(2, 1, 1.0)
    assert pipelining.sending(events).round_trips == 25


# A kill


def test_a_host_that_is_tried_after_a_kill_is_not_good() -> None:
    assert is_good(killed.judge(killed.Measured((), 0, 0)))
    assert not is_good(killed.judge(killed.Measured(("127.1.0.1",), 0, 0)))
    assert not is_good(killed.judge(killed.Measured((), 1, 0)))
    assert not is_good(killed.judge(killed.Measured((), 0, 1)))


def test_the_hosts_with_a_cap_have_one() -> None:
    assert (CAPPED.cap, caps.CAPPED.cap) == (3, 3)
