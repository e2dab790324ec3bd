"""The model of the clustered queue: no state breaks an invariant, and every rule that is left out shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.durability.model.__main__ import MODELS, main
from tests.durability.model.explore import explore
from tests.durability.model.scenarios import MUTANTS, NEEDLESS, SCENARIOS
from tests.durability.model.search import Explored
from tests.durability.model.state import Setting

FEW, MANY = 300, 60_000
"""States looked at of each scenario: in every run of the suite, and when it is asked for."""

MOST = 6000
"""States in which an ordinary mutant must have shown."""


def leave_out(mutant: str, most_states: int) -> Explored:
    return explore(Setting(SCENARIOS[MUTANTS[mutant]], frozenset(mutant.split(" + "))), most_states)


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_state_near_the_beginning_breaks_an_invariant(name: str) -> None:
    found = explore(Setting(SCENARIOS[name]), FEW)
    assert found.damage is None, " > ".join(found.story)
    assert found.is_whole or found.states >= FEW


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant not in NEEDLESS])
def test_a_rule_that_is_left_out_shows(mutant: str) -> None:
    found = leave_out(mutant, MOST)
    assert found.damage is not None
    assert found.damage.startswith("I")
    assert found.story


def test_each_rule_of_the_model_can_be_left_out() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py") if path.name != Path(__file__).name)
    kept = re.findall(r'keeps\("([^"]+)"\)', text) + re.findall(r'"([^"]+)" (?:not )?in (?:setting\.)?without', text)
    assert MODELS["clustered"].rules() == sorted(set(kept))


def test_a_story_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "barrier of a batch"]) == 0
    assert "message 0 arrives > batch 2 written > POWER CUT" in capsys.readouterr().out


def test_a_rule_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["-m", "barrier of a match"])
    assert "barrier of a batch" in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_state_breaks_an_invariant(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = explore(Setting(SCENARIOS[name]), MANY)
    with capsys.disabled():
        print(f"\n{name}: {found.states} states, {'all of them' if found.is_whole else 'the nearest'}")
    assert found.damage is None, " > ".join(found.story)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", NEEDLESS)
def test_a_rule_that_is_said_to_be_needless_is(mutant: str) -> None:
    found = leave_out(mutant, MANY)
    assert found.damage is None, " > ".join(found.story)
