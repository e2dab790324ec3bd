"""All of it: every workload of up to three operations of every provider, on both readings of the file system, with and
without hard links.

    MAILISMUS_CRASH_POINTS=DIRECTORY nice pytest -m exhaustive tests/durability/crash

takes hours (`-k chunk-`, `-k log-`: of one provider), and goes on where it was interrupted: what is done is kept in the
directory, or in pytest's cache. With `-s` it says for each part how many states it looked at; the sum comes at the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.crash.catalogue import catalogue_of
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.fingerprint import fingerprint
from tests.durability.crash.operations import DoesNotApply
from tests.durability.crash.progress import Progress, path_for
from tests.durability.crash.workloads import SHALLOW, Task, all_beginning_with, longer
from tests.durability.subjects.interface import Subject
from tests.durability.subjects.named import SUBJECTS

PROVIDERS = {name: SUBJECTS[name] for name in ("clustered", "log", "chunk")}
LINKS = {True: "hardlinks", False: "counted"}
SETTINGS = [
    pytest.param(subject, links, id=f"{name}-{LINKS[links]}")
    for name, subject in PROVIDERS.items()
    for links in ([False, True] if subject.has_links else [False])
]
FIRST = [
    pytest.param(subject, links, first, id=f"{name}-{LINKS[links]}-{first}")
    for name, subject in PROVIDERS.items()
    for first in catalogue_of(subject).every
    for links in ([False, True] if subject.has_links else [False])
]


@pytest.fixture(scope="module")
def code() -> str:
    return fingerprint()


def look_at(
    subject: Subject,
    tasks: list[Task],
    name: str,
    code: str,
    request: pytest.FixtureRequest,
    tally: Tally,
    hardlinks: bool,
) -> None:
    """All that is not done yet."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    cached = Path(str(cache.mkdir("crash-points"))) if cache is not None else None
    part = f"{subject.name}-{name.replace(' ', '-')}-{LINKS[hardlinks]}"
    progress = Progress(path_for(part, cached), code)
    explorer = Explorer(subject, hardlinks=hardlinks)
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
@pytest.mark.parametrize(("subject", "hardlinks", "first"), FIRST)
def test_all_workloads_that_begin_with(
    subject: Subject, hardlinks: bool, first: str, code: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    tasks = list(all_beginning_with(first, catalogue_of(subject)))
    look_at(subject, tasks, first, code, request, tally, hardlinks)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("subject", "hardlinks"), SETTINGS)
def test_longer_workloads(
    subject: Subject, hardlinks: bool, code: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    found = longer(catalogue_of(subject)).values()
    tasks = [Task(names[:count], SHALLOW) for names in found for count in range(4, len(names) + 1)]
    look_at(subject, tasks, "longer", code, request, tally, hardlinks)
