"""Mutants of the schedule: one text of a module replaced, in memory, and put into the classes that all others use."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from mailismus.deliver.schedule import choice, destdb, destinations, endpoint, host, line, parked, pool, schedule
from tests.deliver.schedule import (
    test_choice,
    test_destdb,
    test_destinations,
    test_line,
    test_parked,
    test_pool,
    test_schedule,
)

TESTS = {
    choice: test_choice,
    destdb: test_destdb,
    destinations: test_destinations,
    endpoint: test_choice,
    host: test_choice,
    line: test_line,
    parked: test_parked,
    pool: test_pool,
    schedule: test_schedule,
}
"""The rules of each module."""


class Mutant(NamedTuple):
    """`old` is in the module once. `tests`: those that must notice it, if they are not those of the module."""

    module: ModuleType
    old: str
    new: str
    tests: ModuleType | None = None

    @property
    def name(self) -> str:
        return f"{self.module.__name__.rpartition('.')[2]}: {self.old.strip()} -> {self.new.strip()}"


def apply(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions and methods of its module be the changed ones."""
    module = mutant.module
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        raise ValueError(f"not there once: {mutant.name}")
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source.replace(mutant.old, mutant.new), module.__file__, "exec", dont_inherit=True), names)
    for name, changed in list(names.items()):
        ours = getattr(module, name, None)
        if isinstance(changed, FunctionType):
            monkeypatch.setattr(module, name, changed)
        elif isinstance(changed, type) and changed.__module__ == module.__name__:
            for key, value in vars(changed).items():
                if isinstance(value, FunctionType | property):
                    monkeypatch.setattr(ours, key, value)
            names[name] = ours  # others have it
        elif isinstance(changed, enum.Enum):
            names[name] = ours


def rules_of(mutant: Mutant) -> Iterator[Callable[[], None]]:
    """The tests that must notice it, without those of random runs."""
    for name, test in vars(mutant.tests or TESTS[mutant.module]).items():
        if not name.startswith("test_") or hasattr(test, "hypothesis"):
            continue
        marks = getattr(test, "pytestmark", [])
        if marks:
            yield from (functools.partial(test, value) for value in marks[0].args[1])
        else:
            yield test


def is_caught(mutant: Mutant) -> bool:
    """Whether a rule fails."""
    for rule in rules_of(mutant):
        try:
            rule()
        except Exception:
            return True
    return False
