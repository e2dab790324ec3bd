"""Reach: which functions each test runs, and how long it takes.

A mutant is shown to those tests alone that run its function, the quickest first: the others do not run what is left out in
it. Crash points are asked behind them, all of the selection.

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

FIRST_S = 20.0
"""Seconds of tests that are asked about every mutant before longer ones are about any."""

ALWAYS = ""
"""The name under which stands what counts for every test."""


@attrs.define
class Run:
    """Of one test."""

    seconds: float
    functions: set[str]
    """As `key_of` calls them."""


@attrs.frozen
class Reach:
    """What was told of tests, by node ID."""

    tests: Mapping[str, Run]

    def judges(self, mutant: Mutant, files: Mapping[str, str]) -> list[Judge] | None:
        """The tests that are asked, one judge after the other; empty: none runs it. None: its function is not known."""
        wanted = functions_of(mutant, files)
        if not wanted:
            return None
        always = self.tests.get(ALWAYS)
        is_always = always is not None and not wanted.isdisjoint(always.functions)
        found = [
            name
            for name, run in self.tests.items()
            if name != ALWAYS and (is_always or not wanted.isdisjoint(run.functions))
        ]
        seconds, soon, late = 0.0, list[str](), list[str]()
        for name in sorted(found, key=lambda name: self.tests[name].seconds):
            seconds += self.tests[name].seconds
            (soon if seconds <= FIRST_S else late).append(name)
        return [_judge(order) for order in (soon, late) if order]

    def to_json(self) -> dict[str, list[object]]:
        """For a file."""
        return {name: [run.seconds, sorted(run.functions)] for name, run in self.tests.items()}

    @classmethod
    def from_json(cls, told: Mapping[str, tuple[float, Sequence[str]]]) -> Reach:
        """What `to_json` gave."""
        return cls({name: Run(seconds, set(found)) for name, (seconds, found) in told.items()})


def _judge(order: Sequence[str]) -> Judge:
    files = dict.fromkeys(name.partition("::")[0].removeprefix("tests/") for name in order)
    return Judge(tuple(files), order=tuple(order))


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
