"""Crash points of the shared queue, over models of its stores: a selection of the states, and with `exhaustive` all of them.

pytest -m exhaustive tests/durability/crash -k distributed
"""

from __future__ import annotations

import pytest

from tests.distributed.points.explorer import explore
from tests.distributed.points.workloads import WORKLOADS
from tests.durability.crash.explorer import Tally
from tests.durability.crash.part import Part, part_asked_for

SELECTED = Part(1, 40)
"""Of so many states one is looked at each time: the same ones."""


def look_at(name: str, part: Part, tally: Tally) -> None:
    """The states of a workload that belong to a part."""
    found = explore(WORKLOADS[name], part.has)
    tally += Tally(found.workloads, found.states, found.different)
    print(f"\n{name}: {found}")


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_selected_state_of_a_workload_breaks_an_invariant(name: str, tally: Tally) -> None:
    look_at(name, SELECTED, tally)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_state_of_a_workload_breaks_an_invariant(name: str, tally: Tally) -> None:
    look_at(name, part_asked_for(), tally)
