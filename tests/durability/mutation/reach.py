"""Reach: which functions each test, and each workload of crash points, runs, and how long it takes.

A mutant is shown to those alone that run its function, the quickest first: the others do not run what is left out in it.

*Rules*: what is run by an import, or by a fixture of more than one test, counts for every test. Where the function of a
mutant is not known, judges are asked as without this.

*Not here*: the run that tells it (`telling`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

import attrs

from tests.durability.mutation.judges import Judge
from tests.durability.mutation.mutants import Kind, Mutant
from tests.durability.mutation.rules import RULES

FIRST_TESTS_S, FIRST_LOOKS_S = 20.0, 60.0
"""Seconds of tests, and of workloads, that are asked about every mutant before longer ones are about any."""

ALWAYS = ""
"""The name under which stands what counts for every test."""


@attrs.define
class Run:
    """Of one test or workload."""

    seconds: float
    functions: set[str]
    """As `key_of` calls them."""


@attrs.frozen
class Reach:
    """What was told: `tests` by node ID, `looks` by name."""

    tests: Mapping[str, Run]
    looks: Mapping[str, Run]

    def judges(self, mutant: Mutant, files: Mapping[str, str], provider: str) -> list[Judge] | None:
        """Who is asked, one after the other; empty: nothing runs it. None: its function is not known."""
        wanted = functions_of(mutant, files)
        if not wanted:
            return None
        always = self.tests.get(ALWAYS)
        is_always = always is not None and not wanted.isdisjoint(always.functions)
        tests = [name for name, run in self.tests.items() if is_always or not wanted.isdisjoint(run.functions)]
        looks = [name for name, run in self.looks.items() if not wanted.isdisjoint(run.functions)]
        soon_tests, late_tests = _split(self.tests, tests, FIRST_TESTS_S)
        soon_looks, late_looks = _split(self.looks, looks, FIRST_LOOKS_S)
        asked = [_tests(soon_tests), _looks(soon_looks, provider), _tests(late_tests), _looks(late_looks, provider)]
        if mutant.kind is Kind.CHECK:
            asked[1], asked[2] = asked[2], asked[1]
        return [judge for judge in asked if judge is not None]

    def to_json(self) -> list[dict[str, list[object]]]:
        """For a file."""
        return [
            {name: [run.seconds, sorted(run.functions)] for name, run in runs.items()} for runs in (self.tests, self.looks)
        ]

    @classmethod
    def from_json(cls, parts: Sequence[Mapping[str, tuple[float, Sequence[str]]]]) -> Reach:
        """What `to_json` gave."""
        tests, looks = ({name: Run(seconds, set(found)) for name, (seconds, found) in part.items()} for part in parts)
        return cls(tests, looks)


def functions_of(mutant: Mutant, files: Mapping[str, str]) -> set[str]:
    """The functions in which it changes something; none: what it changes is in no function."""
    if mutant.kind is not Kind.RULE:
        return {key_of(mutant.path, mutant.function)}
    rule, source = RULES[mutant.text], files[mutant.path]
    first = source[: source.index(rule.old)].count("\n") + 1
    last = first + rule.old.rstrip("\n").count("\n")
    return {
        key_of(mutant.path, name)
        for name, node in named_functions(ast.parse(source))
        if node.lineno <= last and first <= (node.end_lineno or first)
    }


def named_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions and methods, as mutants name them."""
    for node in tree.body:
        prefix, body = (f"{node.name}.", node.body) if isinstance(node, ast.ClassDef) else ("", [node])
        yield from (
            (prefix + inner.name, inner) for inner in body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        )


def key_of(path: str, function: str) -> str:
    """What a function is called here."""
    return f"{path} | {function}"


def _split(runs: Mapping[str, Run], names: Sequence[str], most_s: float) -> tuple[list[str], list[str]]:
    """The quickest ones, which take no longer than so many seconds in all, and the others; the quicker ones first."""
    seconds, soon, late = 0.0, list[str](), list[str]()
    for name in sorted((name for name in names if name != ALWAYS), key=lambda name: runs[name].seconds):
        seconds += runs[name].seconds
        (soon if seconds <= most_s else late).append(name)
    return soon, late


def _tests(order: Sequence[str]) -> Judge | None:
    files = dict.fromkeys(name.partition("::")[0].removeprefix("tests/") for name in order)
    return Judge(tuple(files), order=tuple(order)) if order else None


def _looks(order: Sequence[str], provider: str) -> Judge | None:
    return Judge(order=tuple(order), provider=provider) if order else None
