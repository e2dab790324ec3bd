"""Who is asked about a mutant by what runs its function."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.durability.mutation.judges import Judge
from tests.durability.mutation.mutants import ROOT, Kind, Mutant, sources
from tests.durability.mutation.reach import ALWAYS, FIRST_S, Reach, Run, functions_of, key_of
from tests.durability.mutation.rules import RULES

BATCH = "mailismus/queue/providers/chunk/write/batch.py"
MUTANT = Mutant(Kind.ORDER, BATCH, "BatchWriter.run", "")
RUNS = {key_of(BATCH, "BatchWriter.run")}


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return sources("chunk")


def test_those_that_run_the_function_are_asked_the_quickest_first(files: dict[str, str]) -> None:
    tests = {
        "tests/chunk/test_a.py::test_long": Run(FIRST_S, RUNS),
        "tests/chunk/test_a.py::test_second": Run(2, RUNS),
        "tests/chunk/test_b.py::test_first": Run(1, RUNS),
        "tests/chunk/test_b.py::test_other": Run(1, {key_of(BATCH, "BatchWriter._sync")}),
    }

    judges = Reach(tests).judges(MUTANT, files)

    assert judges == [
        Judge(
            ("chunk/test_b.py", "chunk/test_a.py"),
            order=("tests/chunk/test_b.py::test_first", "tests/chunk/test_a.py::test_second"),
        ),
        Judge(("chunk/test_a.py",), order=("tests/chunk/test_a.py::test_long",)),
    ]


def test_what_an_import_or_a_shared_fixture_runs_counts_for_every_test(files: dict[str, str]) -> None:
    tests = {ALWAYS: Run(0, RUNS), "tests/a.py::a": Run(1, set())}

    assert Reach(tests).judges(MUTANT, files) == [Judge(("a.py",), order=("tests/a.py::a",))]


def test_no_test_is_asked_about_what_none_runs(files: dict[str, str]) -> None:
    assert Reach({"tests/a.py::a": Run(1, set())}).judges(MUTANT, files) == []


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if "/chunk/" in rule.path])
def test_a_rule_changes_a_function(name: str, files: dict[str, str]) -> None:
    found = functions_of(Mutant(Kind.RULE, RULES[name].path, "", name), files)
    assert len(found) == 1


def test_a_rule_in_no_function_is_judged_as_without_reach(files: dict[str, str]) -> None:
    name, rule = next((name, rule) for name, rule in RULES.items() if "/chunk/" in rule.path)
    changed = files | {rule.path: f"x = '''{rule.old}'''\n"}
    assert Reach({}).judges(Mutant(Kind.RULE, rule.path, "", name), changed) is None


def test_what_was_told_is_kept() -> None:
    reach = Reach({"tests/a.py::a": Run(1.5, RUNS)})
    assert Reach.from_json(json.loads(json.dumps(reach.to_json()))) == reach


NOTES = """
from tests.durability.mutation.hook import install_notes
found = []
install_notes("chunk", found.append)
from mailismus.queue.providers.chunk.format.states import state_of
found.clear()
state_of(["pid"])
print(found)
"""


def test_functions_tell_that_they_begin() -> None:
    said = subprocess.run([sys.executable, "-c", NOTES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{['mailismus/queue/providers/chunk/format/states.py | state_of']}"


ORDER = """
from tests.durability.mutation.hook import install
from tests.durability.mutation.judges import by_tests
from tests.durability.mutation.mutants import find, sources
name = "check | chunk/format/states.py | state_of | MESS not in there"
install(next(mutant for mutant in find(sources("chunk")) if mutant.name == name), "chunk")
path = "tests/chunk/test_states.py"
well, fails = f"{path}::test_names_tell_the_state[pid-ChunkState.S1]", f"{path}::test_what_fits_no_state_is_damage"
found = [[test for test, _ in by_tests(["chunk/test_states.py"], order=order)] for order in ([well], [fails, well])]
print(f"\\n{found}")
"""


def test_of_tests_in_an_order_no_others_are_asked() -> None:
    said = subprocess.run([sys.executable, "-c", ORDER], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == str([[], ["tests/chunk/test_states.py::test_what_fits_no_state_is_damage"]])
