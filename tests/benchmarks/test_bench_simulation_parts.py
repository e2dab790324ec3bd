"""The parts of the simulation: its clock, measures, receivers, drawings, and its program."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.simulation.__main__ import main
from benchmarks.simulation.books import Service
from benchmarks.simulation.cases import CASES
from benchmarks.simulation.decisions import COUNTS, WAYS, measure
from benchmarks.simulation.drawing import Curve, Panel, draw_curves, draw_panels
from benchmarks.simulation.measures import demand, fairness, fill, jain, percentile
from mailismus.plan.clock import STARTS_AT, VirtualClock
from mailismus.plan.site import ReceivingSite, SiteHabits, SiteKind


def test_events_of_the_clock_run_in_the_order_of_their_times_then_of_their_plans() -> None:
    clock, seen = VirtualClock(), list[str]()
    clock.callLater(2.0, seen.append, "b")
    clock.callLater(2.0, seen.append, "c")
    clock.callLater(1.0, lambda: clock.callLater(0, seen.append, "a"))
    clock.at(clock.now + 3.0, seen.append, "d")
    clock.run(clock.now + 2.5)
    assert seen == ["a", "b", "c"]
    assert clock.now == STARTS_AT + 2.0
    clock.run()
    assert seen[3:] == ["d"]


def test_calls_are_cancelled_and_moved_both_ways() -> None:
    clock, seen = VirtualClock(), list[float]()
    later, earlier, never = [clock.callLater(5.0, lambda: seen.append(clock.now - STARTS_AT)) for _ in range(3)]
    later.reset(8.0)
    earlier.reset(2.0)
    never.cancel()
    assert [call.active() for call in (later, earlier, never)] == [True, True, False]
    clock.run()
    assert seen == [2.0, 8.0]
    assert not later.active()


def test_percentiles() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.95, 0.951, 1.0)] == [1.0, 50.0, 95.0, 96.0, 100.0]
    assert percentile([], 0.5) == 0.0
    assert percentile([3.0], 0.99) == 3.0


def test_jains_index() -> None:
    assert jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([]) == 1.0


def test_who_asks_for_little_gets_it_and_others_as_much_as_each_other() -> None:
    assert fill([1.0, 10.0, 10.0], 11.0) == [1.0, 5.0, 5.0]
    assert fill([1.0, 2.0], 9.0) == [1.0, 2.0]


def service(came_at: list[float], served_at: list[float]) -> Service:
    """What a sender asked for and got."""
    made = Service()
    made.came_at.extend(came_at)
    made.served_at.extend(served_at)
    return made


def test_fairness_is_among_those_who_wait() -> None:
    equal = {b"a": service([0.0] * 10, [1.0, 2.0, 3.0]), b"b": service([0.0] * 10, [1.0, 2.0, 3.0])}
    assert fairness(equal, 0.5, 5.0) == pytest.approx(1.0)
    starved = {b"a": service([0.0] * 10, [1.0, 2.0, 3.0]), b"b": service([0.0] * 10, [])}
    assert fairness(starved, 0.5, 5.0) == pytest.approx(0.5)
    small = {b"a": service([0.0] * 10, [1.0, 2.0, 3.0]), b"b": service([0.0], [1.0])}
    assert fairness(small, 0.5, 5.0) == pytest.approx(1.0)
    done = {b"a": service([0.0] * 10, [1.0, 2.0, 3.0]), b"b": service([0.0], [0.1])}
    assert fairness(done, 0.5, 5.0) == pytest.approx(1.0)
    assert demand(done[b"b"], 0.5, 5.0) == (0, 0)


def test_a_receiver_counts_what_only_its_state_refuses() -> None:
    site = ReceivingSite("a", (), SiteHabits(SiteKind.CAPPED, most_connections=1))
    assert [site.admit(), site.admit()] == [True, False]
    site.leave()
    assert site.admit()
    assert (site.wasted, site.failed, site.most_open) == (1, 1, 1)


def test_a_receiver_counts_the_messages_of_a_minute() -> None:
    site = ReceivingSite("a", (), SiteHabits(SiteKind.RATED, most_a_minute=2))
    assert [site.begin(at) for at in (0.0, 1.0, 59.9, 60.0, 60.5, 61.0)] == [True, True, False, True, False, True]
    assert (site.messages, site.started, site.most_a_minute, site.wasted) == (6, 4, 2, 2)


def test_the_first_attempt_at_a_greylisting_receiver_is_not_wasted() -> None:
    site = ReceivingSite("a", (), SiteHabits(SiteKind.GREY, grey_s=300.0))
    assert [site.knows(b"r", at) for at in (0.0, 100.0, 300.0)] == [False, False, True]
    assert site.wasted == 1


def test_a_flapping_receiver_is_up_and_down_in_turns() -> None:
    site = ReceivingSite("a", (), SiteHabits(SiteKind.FLAPPING, up_s=60.0, down_s=30.0))
    assert [site.is_up(at) for at in (0.0, 59.0, 60.0, 89.0, 90.0)] == [True, True, False, False, True]


def test_drawings_are_svg_with_a_line_for_each_curve_and_a_bar_for_each_value() -> None:
    curves = [Curve("a & b", "#123456", is_dashed, [0.1, 0.2, 5.0]) for is_dashed in (False, True)]
    drawn = ElementTree.fromstring(draw_curves("delays", "of mail", curves))
    assert len(drawn.findall("{*}polyline")) == 2
    panels = [Panel("x", [("a", "#111111", 1.0), ("b", "#222222", 0.0)], 0.9)]
    assert len(ElementTree.fromstring(draw_panels("figures", panels)).findall("{*}rect")) == 1 + 2


def test_the_program_runs_a_small_world_keeps_its_figures_and_draws_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "runs.jsonl"
    main(["--recipients", "2000", "--schedule", "all", "--record", str(record)])
    runs = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(one["schedule"], one["has_big"]) for one in runs] == [
        (schedule, has_big) for schedule in ("ours", "first come", "equal share") for has_big in (False, True)
    ]
    assert all(one["delivered"] + one["left"] == (2000 if one["has_big"] else 1800) for one in runs)
    main(["--record", str(record), "--draw", str(tmp_path)])
    assert {path.name for path in tmp_path.glob("*.svg")} == {"delays.svg", "figures.svg"}
    assert "seed 1" in capsys.readouterr().out


def test_the_program_runs_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--cases", "local"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "1,000 local users" in line]
    assert len({case.name for case in CASES}) == len(CASES)


def test_decisions_are_made_in_every_way() -> None:
    found = measure(decisions=3, repeats=1)
    assert list(found) == list(WAYS)
    assert all(list(times) == list(COUNTS) and min(times.values()) > 0 for times in found.values())
