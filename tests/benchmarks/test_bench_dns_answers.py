"""What the benchmark of answers measures; no time is judged here."""

from __future__ import annotations

import random

from benchmarks.dns_answers import RANDOM, cost_ms, measure, random_answers
from tests.dns.hostile import ORDINARY, PASSED, REFUSED


def test_every_answer_is_read_and_has_a_goal() -> None:
    measured = measure()
    for kind, expected in (("ordinary", ORDINARY), ("refused", REFUSED), ("passed", PASSED)):
        answers, goal_ms, rounds = measured[kind]
        assert answers == expected
        assert goal_ms > 0
        assert rounds > 1
        assert all(cost_ms(one, 1) >= 0 for one in answers.values())


def test_random_answers_are_the_same_in_each_run() -> None:
    first, second = (random_answers(random.Random(1)) for _ in range(2))
    assert first == second
    assert len({one.wire for one in first}) == RANDOM
    assert all(cost_ms(one, 1) >= 0 for one in first[:100])
