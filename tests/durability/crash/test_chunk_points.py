"""Crash points of the one-file-a-message queue: the selection that runs each time.

Every file that goes gives its number to the next one, so each state of a power cut is one in which numbers came back. The
rest: `python -m tests.durability.crash --provider chunk`.
"""

from __future__ import annotations

import pytest

from tests.durability.crash.catalogue import CHUNK as OPERATIONS
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.operations import DoesNotApply
from tests.durability.crash.workloads import ANEW, OF_THE_CHUNKS, QUICK, SELECTED, SINGLE, Task, singles
from tests.durability.subjects.chunk import CHUNK


@pytest.mark.parametrize("task", singles(OPERATIONS), ids=str)
def test_no_crash_point_of_an_operation_breaks_an_invariant(task: Task, tally: Tally) -> None:
    tally += Explorer(CHUNK).explore(task.names, SINGLE)


@pytest.mark.parametrize("name", OPERATIONS.needs_another)
def test_an_operation_says_where_it_has_nothing_to_do(name: str) -> None:
    with pytest.raises(DoesNotApply):
        Explorer(CHUNK).run((name,))


@pytest.mark.parametrize("name", OF_THE_CHUNKS)
def test_no_crash_point_of_a_longer_workload_breaks_an_invariant(name: str, tally: Tally) -> None:
    tally += Explorer(CHUNK).explore(OF_THE_CHUNKS[name], SELECTED, whole=True)


@pytest.mark.parametrize("names", ANEW, ids=", ".join)
def test_no_crash_point_of_what_is_written_anew_breaks_an_invariant(names: tuple[str, ...], tally: Tally) -> None:
    tally += Explorer(CHUNK).explore(names, QUICK)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "task", [Task((one, other), QUICK) for one in OPERATIONS.operations for other in OPERATIONS.every], ids=str
)
def test_no_crash_point_of_two_operations_breaks_an_invariant(task: Task, tally: Tally) -> None:
    try:
        tally += Explorer(CHUNK).explore(task.names, task.depth, whole=True)
    except DoesNotApply:
        pytest.skip("one does not apply behind the other")
