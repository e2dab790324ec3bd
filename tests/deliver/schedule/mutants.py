"""Mutants of the schedule: one text of a module replaced, in memory, and put into the classes that all others use."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from mailismus.deliver.schedule import (
    choice,
    destdb,
    destinations,
    endpoint,
    handing_out,
    host,
    line,
    missed,
    parked,
    placing,
    pool,
    schedule,
    shares,
    sorted_connections,
)
from mailismus.deliver.sessions import all_sessions
from tests.deliver import test_ageing, test_shares
from tests.deliver.schedule import (
    test_choice,
    test_destdb,
    test_destinations,
    test_excess,
    test_line,
    test_parked,
    test_pool,
    test_profiles,
    test_schedule,
)

TESTS = {
    choice: (test_choice,),
    destdb: (test_destdb,),
    destinations: (test_destinations,),
    endpoint: (test_choice,),
    handing_out: (test_schedule,),
    host: (test_choice,),
    line: (test_line,),
    missed: (test_profiles,),
    parked: (test_parked,),
    placing: (test_schedule,),
    pool: (test_pool,),
    schedule: (test_schedule, test_excess),
    all_sessions: (test_ageing,),
    shares: (test_shares,),
    sorted_connections: (test_choice,),
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
                if isinstance(value, FunctionType) and "__class__" in value.__code__.co_freevars:
                    continue  # it calls `super()`, of the changed class: it stays as it is
                if isinstance(value, FunctionType | property):
                    monkeypatch.setattr(ours, key, value)
            names[name] = ours  # others have it
        elif isinstance(changed, enum.Enum):
            names[name] = ours


def rules_of(mutant: Mutant) -> Iterator[Callable[[], None]]:
    """The tests that must notice it, without those of random runs."""
    modules = TESTS[mutant.module] if mutant.tests is None else (mutant.tests,)
    for name, test in (found for module in modules for found in vars(module).items()):
        if not name.startswith("test_") or hasattr(test, "hypothesis"):
            continue
        marks = getattr(test, "pytestmark", [])
        if marks:
            names, values = marks[0].args
            is_one = isinstance(names, str) and "," not in names
            yield from (functools.partial(test, *((value,) if is_one else value)) for value in values)
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
