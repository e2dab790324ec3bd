"""The table of the schedule's rules (docs/evidence/schedule-rules.md) names tests and mutants that there are."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.deliver.schedule.test_mutants import MUTANTS

PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "schedule-rules.md"
ROW = re.compile(r"\| (?P<rule>[^|`].*?) \| `(?P<test>[\w.]+)` \| `(?P<module>\w+)`: `(?P<text>[^`]+)` \|")


def rows() -> list[tuple[str, str, str, str]]:
    """Rule, test, module and text of each row."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]
    found = [ROW.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if match is None]
    return [(match["rule"], match["test"], match["module"], match["text"]) for match in found if match is not None]


def test_the_table_has_all_rules_and_each_once() -> None:
    rules = [rule for rule, *_ in rows()]
    assert len(rules) == len(set(rules)) == 34


@pytest.mark.parametrize(("rule", "test", "module", "text"), rows())
def test_the_test_and_the_mutant_of_a_rule_are_there(rule: str, test: str, module: str, text: str) -> None:
    file, name = test.split(".")
    package = "tests.deliver" if file in ("test_ageing", "test_shares", "test_host_sharing") else "tests.deliver.schedule"
    assert callable(getattr(importlib.import_module(f"{package}.{file}"), name, None)), f"no test {test}"
    turned = [mutant for mutant in MUTANTS if mutant.module.__name__.endswith(f".{module}") and text in mutant.old]
    assert turned, f"no mutant turns {text!r} of {module}"
