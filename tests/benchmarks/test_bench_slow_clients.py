"""What the benchmark of slow clients makes of its figures."""

from __future__ import annotations

from typing import Any

from benchmarks.slow_clients import Good, complaints, summary

PHASES = ("good ones alone", "beside the slow ones", "when they had left")


def seen(**beside: object) -> dict[str, Any]:
    phases: dict[str, Any] = {phase: {"messages": 10, "lost": 0, "p95_s": 0.1} for phase in PHASES}
    phases["beside the slow ones"].update(beside)
    return phases | {"accepted": 30, "delivered": 30}


def test_good_figures_are_no_complaint() -> None:
    assert complaints(seen(), False) == []


def test_lost_messages_no_messages_and_slow_ones_are() -> None:
    assert "1 messages were not accepted" in complaints(seen(lost=1), True)[0]
    assert complaints(seen(messages=0), False)
    assert "took 1.5 s" in complaints(seen(p95_s=1.5), False)[0]


def test_short_of_files_good_clients_may_be_slow_but_only_beside_the_slow_ones() -> None:
    assert complaints(seen(p95_s=1.5), True) == []
    afterwards = seen()
    afterwards["when they had left"]["p95_s"] = 1.5
    assert complaints(afterwards, True)


def test_what_was_accepted_has_to_be_delivered() -> None:
    assert complaints(seen() | {"delivered": 29}, False) == ["30 accepted, 29 delivered"]


def test_a_phase_without_messages_has_no_time() -> None:
    assert summary(Good(0)).p95_s == float("inf")
    assert summary(Good(0, [0.1] * 19 + [3.0], 20)).slowest_s == 3.0
