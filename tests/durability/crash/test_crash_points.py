"""Every crash point of the clustered queue: what was acknowledged is there, what was settled is gone.

Workloads run on a disk that remembers; then the machine "stops" after each act, in every state that the file system may be
in then, and the server's own start runs, twice. The invariants: `tests.durability.crash.knowledge`.

This is the selection that runs each time: of the longer workloads one state in sixteen, of pairs one in three. The rest:
`pytest -m exhaustive tests/durability/crash`.
"""

from __future__ import annotations

import pytest

from tests.durability.crash.catalogue import CLUSTERED
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.operations import DoesNotApply
from tests.durability.crash.workloads import LINKED, LONGER, SELECTED, SWITCHED, Task, pairs, singles


@pytest.mark.parametrize("task", singles(), ids=str)
def test_no_crash_point_of_an_operation_breaks_an_invariant(task: Task, tally: Tally) -> None:
    tally += Explorer().explore(task.names, task.depth)


@pytest.mark.parametrize("task", pairs(), ids=str)
def test_no_crash_point_of_two_operations_breaks_an_invariant(task: Task, tally: Tally) -> None:
    tally += Explorer().explore(task.names, task.depth)


@pytest.mark.parametrize("name", CLUSTERED.needs_another)
def test_an_operation_says_where_it_has_nothing_to_do(name: str) -> None:
    with pytest.raises(DoesNotApply):
        Explorer().run((name,))


@pytest.mark.parametrize("name", LONGER)
def test_no_crash_point_of_a_longer_workload_breaks_an_invariant(name: str, tally: Tally) -> None:
    tally += Explorer().explore(LONGER[name], SELECTED, whole=True)


@pytest.mark.parametrize("name", LINKED)
def test_no_crash_point_breaks_an_invariant_with_hard_links(name: str, tally: Tally) -> None:
    tally += Explorer(hardlinks=True).explore(LONGER[name], SELECTED, whole=True)


@pytest.mark.parametrize("name", SWITCHED)
@pytest.mark.parametrize("before", [False, True], ids=["begun", "given up"])
def test_either_way_of_releasing_reads_what_the_other_left(name: str, before: bool, tally: Tally) -> None:
    tally += Explorer(hardlinks=before, then=not before).explore(LONGER[name], SELECTED, whole=True)
