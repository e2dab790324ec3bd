"""Figures add up, are taken up again from their file, and the mean of doubled entries is judged."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from benchmarks.results.verdict import judge
from benchmarks.stage.servers import Extras
from benchmarks.stage.trial import SMALL, NextHop
from tests.durability.harness.kill_loop import arguments, plan_round
from tests.durability.harness.rounds import Outcome, Plan, Step
from tests.durability.harness.tally import Figures, Record

GOOD = Figures(kills=10, stops=1, messages=50, entries=60, allowed=30.0, slowest_start_s=1.5)


def _plan(next_hop: NextHop = NextHop.UP) -> Plan:
    return Plan(0, SMALL, next_hop, 100.0, (Step.KILL, Step.KILL_IN_START, Step.STOP), 1.0, 0, Extras(), 7, 10.0)


def test_a_round_allows_20_ms_of_its_rate_a_kill_and_what_was_open() -> None:
    verdict = attrs.evolve(judge([], [], []), open_at_kills=3, settling_at_kills=8)
    verdict = attrs.evolve(verdict, doubled_after_kill=2, doubled_before_kill=1)
    outcome = Outcome(verdict, {"incoming": 0}, 0, 0, 0, (), load_s=4.0, arrived_in_load=800, slowest_start_s=1.0)
    figures = Figures.of(_plan(), outcome, 9.0)
    assert (figures.kills, figures.stops, figures.doubled_at_kills, figures.allowed) == (2, 1, 3, 2 * 0.02 * 200 + 5)
    assert figures.settling == 8
    assert figures.good


CLEAN = Outcome(judge([], [], []), {}, 1, 0, 0, (), 1.0, 0, 1.0)
BAD = [
    attrs.evolve(CLEAN, left={"incoming": 1}),
    attrs.evolve(CLEAN, corrupt_files=1),
    attrs.evolve(CLEAN, complaints=("log:1: Traceback",)),
    attrs.evolve(CLEAN, flushes=2),
    attrs.evolve(CLEAN, stray_files=1),
]


@pytest.mark.parametrize("outcome", BAD)
def test_what_is_left_set_aside_or_complained_of_makes_a_round_bad(outcome: Outcome) -> None:
    assert Figures.of(_plan(), CLEAN, 1.0).good
    assert Figures.of(_plan(), outcome, 1.0).bad_rounds == 1


def test_a_mean_says_something_from_twenty_kills_on() -> None:
    few = attrs.evolve(GOOD, doubled_at_kills=31)
    assert few.good
    assert not Figures.total([few, few]).good
    assert Figures.total([few, GOOD]).good


def test_a_run_goes_on_with_its_own_rounds_alone(tmp_path: Path) -> None:
    path = tmp_path / "record"
    first = Record(path, {"how": "kill -9"})
    first.add(_plan(), GOOD)
    first.add(_plan(NextHop.DOWN), attrs.evolve(GOOD, slowest_start_s=2.5))
    Record(path, {"how": "power cut"}).add(_plan(), GOOD)
    again = Record(path, {"how": "kill -9"})
    assert (again.kills, again.total().entries, again.total().slowest_start_s) == (20, 120, 2.5)
    assert [line.split("|")[1].strip() for line in again.markdown("x").splitlines()[2:]] == [
        "x, next hop down",
        "x, next hop up",
        "x, next hop all",
    ]


def test_rounds_take_the_next_hops_in_turn_and_kill_no_start_first() -> None:
    options = arguments().parse_args(["--stops", "1", "--rate", "100-1000"])
    plans = [plan_round(options, number, 8, seed=number) for number in range(40)]
    assert [plan.next_hop for plan in plans[:4]] == [NextHop.UP, NextHop.DOWN, NextHop.FLAKY, NextHop.UP]
    assert all(plan.kills == 8 and len(plan.steps) == 9 for plan in plans)
    assert all(100 <= plan.rate <= 1000 for plan in plans)
    assert any(Step.KILL_IN_START in plan.steps for plan in plans)
    assert not any(plan.steps[0] is Step.KILL_IN_START for plan in plans)
    assert len({plan.extras.queue for plan in plans}) == 4
