"""All of it: every workload of up to three operations, on both readings of the file system, with and without hard links.

    MAILISMUS_CRASH_POINTS=DIRECTORY nice pytest -m exhaustive tests/durability/crash

takes hours, and goes on where it was interrupted: what is done is kept in the directory, or in pytest's cache. With `-s` it
says for each part how many states it looked at; the sum comes at the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.crash.catalogue import CLUSTERED
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.fingerprint import fingerprint
from tests.durability.crash.operations import DoesNotApply
from tests.durability.crash.progress import Progress, path_for
from tests.durability.crash.workloads import LONGER, SHALLOW, Task, all_beginning_with

LINKS = pytest.mark.parametrize("hardlinks", [False, True], ids=["counted", "hardlinks"])


@pytest.fixture(scope="module")
def code() -> str:
    return fingerprint()


def look_at(tasks: list[Task], name: str, code: str, request: pytest.FixtureRequest, tally: Tally, hardlinks: bool) -> None:
    """All that is not done yet."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    cached = Path(str(cache.mkdir("crash-points"))) if cache is not None else None
    part = f"{name.replace(' ', '-')}-{'hardlinks' if hardlinks else 'counted'}"
    progress = Progress(path_for(part, cached), code)
    explorer = Explorer(hardlinks=hardlinks)
    cut: set[tuple[str, ...]] = set()
    for task in tasks:
        if str(task) in progress.done or any(task.names[: len(names)] == names for names in cut):
            continue
        try:
            progress.add(str(task), explorer.explore(task.names, task.depth))
        except DoesNotApply:
            cut.add(task.names)
            progress.add(str(task), Tally())
    tally += progress.total()
    print(f"\n{part}: {progress.total()}; {progress.before} workloads of them in earlier runs")


@pytest.mark.exhaustive
@LINKS
@pytest.mark.parametrize("first", CLUSTERED.every)
def test_all_workloads_that_begin_with(
    first: str, hardlinks: bool, code: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    look_at(list(all_beginning_with(first)), first, code, request, tally, hardlinks)


@pytest.mark.exhaustive
@LINKS
def test_longer_workloads(hardlinks: bool, code: str, request: pytest.FixtureRequest, tally: Tally) -> None:
    tasks = [Task(names[:count], SHALLOW) for names in LONGER.values() for count in range(4, len(names) + 1)]
    look_at(tasks, "longer", code, request, tally, hardlinks)
