"""The page of mutants, made by the run: what was left out, who caught it and what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from tests.durability.mutation.mutants import ROOT, RULES_ALONE, Kind
from tests.durability.mutation.needless import NEEDLESS

_EVIDENCE = ROOT / "docs" / "evidence"

_OPTION = {"clustered": ""}
"""Of the command for each provider; of others its name."""

_HEAD = """# Mutants: what is left out, and who misses it

Made by `nice python -m tests.durability.mutation {option}--page docs/evidence/{name}`; see
[durability](../durability.md#how-it-is-proved). The list is made from the source of the queue, by the calls of its one door
to the disk: a new call is a new mutant. Each is judged by crash points, one workload after the other, and by the tests of
journal, spool, queue and faults, until one fails; that one is named here. "I1" and the like:
`tests/durability/crash/knowledge.py`.

"""

_RULES_HEAD = """# Mutants: which rule is broken, and who misses it

Made by `nice python -m tests.durability.mutation {option}--page docs/evidence/{name}`; see
[durability](../durability.md#how-it-is-proved). This queue has no files of its own: its mutants are rules that are written
down one by one (`tests/durability/mutation/distributed_rules.py`, `distributed_aside_rules.py`), each with the change of the
source that breaks it. A rule that nobody wrote down is not among them. Each is judged by tests over models of the stores,
until one fails; that one is named here. No service runs.

"""

_WHAT = {
    Kind.BARRIER: "Barriers and directory syncs: the call is left out",
    Kind.COVER: "What the barrier of a checkpoint is over: a file or directory is left out",
    Kind.ORDER: "Orders: the two change places",
    Kind.CHECK: "Checks of what is read: the reason is left out",
    Kind.RULE: "Rules: one is broken",
}

_MOST = 100
"""Letters of what was seen."""


@attrs.frozen
class Result:
    """Of one mutant. `by` empty: it survived."""

    name: str
    by: str
    why: str

    @property
    def is_fine(self) -> bool:
        """Caught, or known to be needless; not both."""
        return bool(self.by) != (self.name in NEEDLESS)

    @property
    def verdict(self) -> str:
        """In words."""
        if not self.by:
            return f"needless: {NEEDLESS[self.name]}" if self.is_fine else "**SURVIVED**"
        return self.by if self.is_fine else f"{self.by} **(said to be needless)**"

    def row(self) -> str:
        """Of the table."""
        return f"| {where(self.name)} | {_cell(self.verdict)} | {_cell(self.why[:_MOST])} |"

    def line(self) -> str:
        """Of the run."""
        return f"{self.name}: {self.verdict}: {self.why[:_MOST]}"


def where(name: str) -> str:
    """The first cell of its row."""
    _, path, *rest = name.split(" | ", 3)
    if name.startswith(Kind.RULE.value):
        return _cell(f"{' | '.join(rest)} (`{path}`)")
    return _cell(f"`{path}` {rest[0]}: `{' | '.join(rest[1:])}`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def page_of(provider: str) -> Path:
    """The page of a provider."""
    return _EVIDENCE / ("durability-mutants.md" if provider == "clustered" else f"{provider}-mutants.md")


def page(results: Sequence[Result], not_judged: Sequence[str] = (), provider: str = "clustered") -> str:
    """All of it. `not_judged`: names."""
    option = _OPTION.get(provider, f"--provider {provider} ")
    head = _RULES_HEAD if provider in RULES_ALONE else _HEAD
    return head.format(option=option, name=page_of(provider).name) + "\n".join(_parts(results, not_judged))


def _parts(results: Sequence[Result], not_judged: Sequence[str]) -> Iterator[str]:
    caught = sum(bool(result.by) for result in results)
    survived = sum(not result.is_fine for result in results)
    needless = len(results) - caught - survived
    yield f"{len(results)} mutants: {caught} caught, {needless} needless, {survived} survived.\n"
    if not_judged:
        yield f"{len(not_judged)} more have not been judged yet (at the end of this page).\n"
    for kind, what in _WHAT.items():
        of_kind = [result for result in results if result.name.startswith(f"{kind.value} |")]
        if of_kind:
            yield f"## {what} ({len(of_kind)})\n\n| what | caught by | seen |\n|---|---|---|"
            yield from (result.row() for result in of_kind)
            yield ""
    if not_judged:
        yield f"## Not judged yet ({len(not_judged)})\n"
        yield from (f"- {name.split(' | ')[0]}: {where(name)}" for name in not_judged)
        yield ""


def remembered(names: Sequence[str], text: str) -> dict[str, str]:
    """Who caught each of these, by an earlier page; empty: not known."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    known = {row[0].removeprefix("| "): row[1].replace("\\|", "|") for row in rows if len(row) > 2 and "**" not in row[1]}
    found = {name: known.get(where(name), "") for name in names}
    return {name: "" if by.startswith("needless: ") else by for name, by in found.items()}
