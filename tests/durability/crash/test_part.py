"""The parts of the long look are all of it, each workload in one of them."""

from __future__ import annotations

import pytest

from tests.durability.crash.catalogue import LOG
from tests.durability.crash.part import VARIABLE, Part, parse_part, part_asked_for
from tests.durability.crash.workloads import threes_beginning_with


def test_each_workload_belongs_to_one_part_and_the_parts_are_alike() -> None:
    names = [str(task) for first in LOG.operations for task in threes_beginning_with(first, LOG)]
    parts = [[name for name in names if Part(number, 10).has(name)] for number in range(1, 11)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert all(len(names) / 13 < len(part) < len(names) / 8 for part in parts)


def test_without_the_variable_all_of_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert part_asked_for().has("store, deliver, restart")
    monkeypatch.setenv(VARIABLE, "3/10")
    assert part_asked_for() == Part(3, 10)


@pytest.mark.parametrize("text", ["0/10", "11/10", "3", "3/", "/10", "a/b", "-1/10", "1/0"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a part"):
        parse_part(text)
