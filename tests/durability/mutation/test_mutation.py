"""The mutation run itself: whatever is added to the source is a new mutant, and what it leaves out is missed."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.durability.crash.workloads import quick_selection
from tests.durability.mutation.hook import install
from tests.durability.mutation.judges import LONG, Judge, soon
from tests.durability.mutation.mutants import BARRIERS, ROOT, RULES_ALONE, Kind, Mutant, changed, find, sources
from tests.durability.mutation.needless import NEEDLESS
from tests.durability.mutation.page import Result, page, remembered
from tests.durability.mutation.rules import RULES

WRITER = "mailismus/journal/writer.py"
BATCH = "mailismus/journal/batch.py"
BARRIER = "            segment.file.sync()\n"
CHECK = "    if start > len(data):\n        return None\n"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return sources()


@pytest.fixture(scope="module")
def every_mutant(mutants: list[Mutant]) -> list[Mutant]:
    """Of all providers of the product, of maildirs and of conversions; what several have is there once."""
    others = [mutant for name in ("log", "chunk", "maildir", "convert", "acts") for mutant in find(sources(name))]
    rules = [mutant for name in RULES_ALONE for mutant in find(sources(name)) if mutant.kind is Kind.RULE]
    return list(dict.fromkeys(mutants + others + rules))


@pytest.fixture(scope="module")
def mutants(files: dict[str, str]) -> list[Mutant]:
    return find(files)


def new_in(files: dict[str, str], path: str, old: str, new: str) -> list[Mutant]:
    """The mutants that this change of the source brings."""
    assert files[path].count(old) == 1
    before = set(find(files))
    return [mutant for mutant in find(files | {path: files[path].replace(old, new)}) if mutant not in before]


def test_a_new_barrier_is_a_new_mutant(files: dict[str, str]) -> None:
    found = new_in(files, WRITER, BARRIER, BARRIER + "            self._disk.sync_directory(self._directory)\n")
    assert {(mutant.kind, mutant.text) for mutant in found} == {
        (Kind.BARRIER, "self._disk.sync_directory(self._directory)"),
        (Kind.ORDER, "segment.file.sync() <> self._disk.sync_directory(self._directory)"),
    }


def test_the_same_barrier_once_more_is_a_mutant_of_its_own(files: dict[str, str]) -> None:
    found = new_in(files, WRITER, BARRIER, BARRIER + "            self.epoch += 0\n" + BARRIER)
    assert [mutant.name for mutant in found] == [
        "barrier | journal/writer.py | JournalWriter.append | segment.file.sync() #2"
    ]


def test_no_barrier_of_the_product_is_no_mutant(every_mutant: list[Mutant]) -> None:
    elsewhere = ROOT / "mailismus" / "disk"
    paths = [path for path in (ROOT / "mailismus").rglob("*.py") if elsewhere not in path.parents]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]
    named = sum(isinstance(node, ast.Attribute) and node.attr in BARRIERS for node in nodes)
    assert named == sum(mutant.kind is Kind.BARRIER for mutant in every_mutant) > 10


def test_an_order_is_seen_over_what_stands_between(files: dict[str, str]) -> None:
    old = "        self.sequence = segment.last_sequence = sequence\n"
    found = new_in(files, WRITER, old, old + "        self._disk.unlink(segment.path)\n")
    assert [mutant.text.partition(" <> ")[2] for mutant in found] == ["self._disk.unlink(segment.path)"]


def test_a_new_check_is_a_new_mutant(files: dict[str, str]) -> None:
    found = new_in(files, BATCH, CHECK, "    if start > len(data) or data[offset] == 7:\n        return None\n")
    assert [(mutant.kind, mutant.text) for mutant in found] == [(Kind.CHECK, "data[offset] == 7")]


def test_a_call_of_something_that_syncs_is_seen_like_a_barrier(files: dict[str, str]) -> None:
    old = "        self._name(numbers)\n        self._disk.sync_directory("
    found = new_in(
        files,
        "mailismus/spool/message_file.py",
        old,
        "        remove_names(self._disk, self._root, self._spool_id, ())\n" + old,
    )
    assert {mutant.kind for mutant in found} == {Kind.ORDER}
    assert len(found) == 2


@pytest.mark.parametrize("provider", ["clustered", "log"])
def test_every_mutant_is_another_source(provider: str) -> None:
    files = sources(provider)
    mutants = find(files)
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    assert {mutant.kind for mutant in mutants} >= set(Kind) - {Kind.COVER}
    as_is = {path: ast.unparse(ast.parse(source)) for path, source in files.items()}
    for mutant in mutants:
        tree = changed(mutant, files)
        compile(tree, mutant.path, "exec")
        assert ast.unparse(tree) != as_is[mutant.path], mutant.name


def test_what_is_not_there_is_no_mutant(files: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="no such mutant"):
        changed(Mutant(Kind.BARRIER, WRITER, "JournalWriter.append", "segment.file.close()"), files)
    rule = next(iter(RULES.values()))
    with pytest.raises(ValueError, match="not there once"):
        rule.change(files | {rule.path: ""})


def test_what_is_said_to_be_needless_is_there(every_mutant: list[Mutant]) -> None:
    assert NEEDLESS.keys() <= {mutant.name for mutant in every_mutant}
    assert all(NEEDLESS.values())


def test_a_module_that_is_imported_already_can_not_be_changed(mutants: list[Mutant]) -> None:
    import mailismus.journal.writer

    assert mailismus.journal.writer
    with pytest.raises(ValueError, match="imported already"):
        install(next(mutant for mutant in mutants if mutant.path == WRITER))


CHOSEN = {
    "barrier | journal/writer.py | JournalWriter.append | segment.file.sync()": "I",
    "cover | clustered/checkpoint/write.py | CheckpointWriter._append | pending.files.add(path)": "I1",
    "rule | journal/replay.py | a later header denies what a barrier failed for": "I",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_left_out_is_missed(name: str) -> None:
    command = [sys.executable, "-m", "tests.durability.mutation", name]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert said.startswith(f"{name}: crash points: "), said
    assert f": {CHOSEN[name]}" in said


def test_what_two_uses_share_is_judged_by_the_tests_of_both() -> None:
    shared = next(mutant for mutant in find(sources("chunk")) if mutant.path == "mailismus/chunks/handler.py")
    assert Judge(("chunks", "maildir"), provider="chunk") in soon(shared, "", "chunk")


def test_of_another_provider_tests_that_name_the_module_are_asked_first() -> None:
    mutant = Mutant(Kind.CHECK, "mailismus/queue/providers/log/read/skim.py", "", "")

    first, second, *_ = soon(mutant, "", "log")

    assert first == Judge(("log/test_skim.py",), provider="log")
    assert second == Judge(("log",), LONG, provider="log")


def test_workloads_have_names_of_their_own() -> None:
    looks = quick_selection()
    assert len(set(map(str, looks))) == len(looks)


def test_the_page_remembers_who_caught_a_mutant(mutants: list[Mutant]) -> None:
    names = [mutant.name for mutant in mutants]
    caught = {name: "" if name in NEEDLESS else f"crash points: a | {n}" for n, name in enumerate(names)}
    results = [Result(name, by, "why") for name, by in caught.items()]
    assert remembered(names, page(results)) == caught


def test_a_row_says_what_became_of_a_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = Result("barrier | a.py | f | x.sync()", "crash points: store", "I1: lost | twice")
    assert caught.row() == "| `a.py` f: `x.sync()` | crash points: store | I1: lost \\| twice |"
    assert caught.is_fine
    survived = Result(caught.name, "", "")
    assert "SURVIVED" in survived.row()
    assert not survived.is_fine
    monkeypatch.setitem(NEEDLESS, caught.name, "nobody reads it")
    assert "| needless: nobody reads it |" in survived.row()
    assert survived.is_fine
    assert not caught.is_fine
    assert "said to be needless" in caught.row()


def test_every_rule_is_a_mutant(every_mutant: list[Mutant]) -> None:
    assert {mutant.text for mutant in every_mutant if mutant.kind is Kind.RULE} == RULES.keys()


def test_every_rule_stands_in_the_source_once() -> None:
    found = {name: (ROOT / rule.path).read_text().count(rule.old) for name, rule in RULES.items()}
    assert {name: count for name, count in found.items() if count != 1} == {}


def test_the_run_says_that_the_naive_provider_fails_as_it_is() -> None:
    command = [sys.executable, "-m", "tests.durability.mutation", "--provider", "naive"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "the source as it is fails already: " in done.stdout
    assert "crash points: store" in done.stdout
