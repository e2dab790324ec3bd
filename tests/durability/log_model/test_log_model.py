"""The model of the log-structured queue: no state breaks an invariant, and every rule that is left out shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.durability.model.__main__ import MODELS, main

MODEL = MODELS["log"]

FEW, MANY = 400, 60_000
"""States looked at of each scenario: in every run of the suite, and when it is asked for."""

MOST = 4000
"""States in which an ordinary mutant must have shown."""


@pytest.mark.parametrize("name", MODEL.scenarios)
def test_no_state_near_the_beginning_breaks_an_invariant(name: str) -> None:
    found = MODEL.explore(name, frozenset(), FEW)
    assert found.damage is None, " > ".join(found.story)
    assert found.is_whole or found.states >= FEW


@pytest.mark.parametrize("mutant", [mutant for mutant in MODEL.mutants if mutant not in MODEL.needless])
def test_a_rule_that_is_left_out_shows(mutant: str) -> None:
    found = MODEL.leave_out(mutant, MOST)
    assert found.damage is not None
    assert found.damage.startswith("I")
    assert found.story


def test_each_rule_of_the_model_can_be_left_out() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py") if path.name != Path(__file__).name)
    kept = re.findall(r'keeps\("([^"]+)"\)', text) + re.findall(r'"([^"]+)" (?:not )?in (?:setting\.)?without', text)
    assert MODEL.rules() == sorted(set(kept))


def test_the_story_of_a_message_that_was_once_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--provider", "log", "-m", "a move of work has a start record beside it"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "I1: message 0 recipient 0 is lost" in told
    assert "positions written > kill -9" in told


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODEL.scenarios)
def test_no_state_breaks_an_invariant(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = MODEL.explore(name, frozenset(), MANY)
    with capsys.disabled():
        print(f"\n{name}: {found.states} states, {'all of them' if found.is_whole else 'the nearest'}")
    assert found.damage is None, " > ".join(found.story)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", MODEL.needless)
def test_a_rule_that_is_said_to_be_needless_is(mutant: str) -> None:
    found = MODEL.leave_out(mutant, MANY)
    assert found.damage is None, " > ".join(found.story)
