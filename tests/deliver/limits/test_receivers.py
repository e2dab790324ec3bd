"""Windows at simulated receivers: a cap is found with few refusals and used, and one that is gone is noticed."""

from __future__ import annotations

import pytest

from mailismus.deliver.limits.window import Window
from tests.deliver.limits.receiver import Answer, Simulation


@pytest.mark.parametrize("answer", list(Answer))
@pytest.mark.parametrize("reply_s", [0.005, 0.05, 0.2])
@pytest.mark.parametrize("connections", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("limit", [20, None])
def test_a_cap_costs_few_refusals_and_is_used(answer: Answer, reply_s: float, connections: int, limit: int | None) -> None:
    simulation = Simulation(Window(limit), lambda now: connections, reply_s, answer)
    simulation.run(messages=4000 if connections > 2 else 1000)
    assert len(simulation.refused_at) <= 10
    least = 0.95 if answer is Answer.GREETING else 0.8 if reply_s == 0.2 else 0.6  # a short run is half at half the window
    assert simulation.share() >= least


@pytest.mark.parametrize("answer", list(Answer))
@pytest.mark.parametrize("gone_at", [3.0, 40.0, 100.0, 301.0])
@pytest.mark.parametrize("reply_s", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_a_cap_that_is_gone_is_noticed_within_a_minute(
    answer: Answer, gone_at: float, reply_s: float, chance: float
) -> None:
    simulation = Simulation(Window(20, chance), lambda now: 3 if now < gone_at else 1000, reply_s, answer)
    simulation.run(until=gone_at + 60.0)
    assert simulation.standing >= (16 if reply_s < 1.0 else 8)


@pytest.mark.parametrize("answer", list(Answer))
def test_a_receiver_that_takes_nothing_is_asked_seldom(answer: Answer) -> None:
    simulation = Simulation(Window(20), lambda now: 0.0, 0.05, answer)
    simulation.run(until=600.0)
    assert simulation.delivered == 0
    assert len(simulation.refused_at) <= 30
    assert all(later - at >= 5.0 for at, later in zip(simulation.refused_at[2:], simulation.refused_at[3:], strict=False))


def test_a_receiver_that_was_down_and_is_back_gets_all_again() -> None:
    simulation = Simulation(Window(20), lambda now: 0.0 if 10.0 < now < 310.0 else 1000.0, 0.1)
    simulation.run(until=10.0)
    assert simulation.standing == 20
    simulation.run(until=370.0)
    assert simulation.standing >= 16


def test_a_blip_costs_seconds() -> None:
    simulation = Simulation(Window(20), lambda now: 1000.0, 0.2, max_messages=10**9)
    simulation.run(until=30.0)
    simulation.window.note_cut(30.0, 29.9)
    simulation.run(until=34.0)
    assert simulation.standing == 10
    simulation.run(until=36.0)
    assert simulation.standing >= 15
    simulation.run(until=40.0)
    assert simulation.standing == 20
