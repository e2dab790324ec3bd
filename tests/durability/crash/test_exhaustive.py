"""All of it: every workload of up to three operations of every provider, on both readings of the file system, with and
without hard links.

    MAILISMUS_CRASH_POINTS=DIRECTORY nice pytest -m exhaustive tests/durability/crash

takes hours (`-k chunk-`, `-k log-`: of one provider; `-k 'threes and log-'`: its workloads of three), and goes on where it
was interrupted: what is done is kept in the directory, or in pytest's cache. With `MAILISMUS_CRASH_PART=3/10` it looks at
the third tenth of the workloads (`part`). With `-s` it says for each file how many states it looked at; the sum comes last.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.crash.catalogue import catalogue_of
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.fingerprint import fingerprint
from tests.durability.crash.operations import DoesNotApply
from tests.durability.crash.part import part_asked_for
from tests.durability.crash.progress import Progress, path_for
from tests.durability.crash.workloads import SHALLOW, Task, longer, singles_and_pairs_beginning_with, threes_beginning_with
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
THREES = [
    pytest.param(subject, links, first, id=f"{name}-{LINKS[links]}-{first}")
    for name, subject in PROVIDERS.items()
    for first in catalogue_of(subject).operations
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
    """All that is asked for and not done yet."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    cached = Path(str(cache.mkdir("crash-points"))) if cache is not None else None
    file = f"{subject.name}-{name.replace(' ', '-')}-{LINKS[hardlinks]}"
    progress, part = Progress(path_for(file, cached), code), part_asked_for()
    explorer = Explorer(subject, hardlinks=hardlinks)
    cut: set[tuple[str, ...]] = set()
    for task in tasks:
        if str(task) in progress.done or not part.has(str(task)) or any(task.names[: len(names)] == names for names in cut):
            continue
        try:
            progress.add(str(task), explorer.explore(task.names, task.depth))
        except DoesNotApply:
            cut.add(task.names)
            progress.add(str(task), Tally())
    tally += progress.total()
    print(f"\n{file}: {progress.total()}; {progress.before} workloads of them in earlier runs")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("subject", "hardlinks", "first"), FIRST)
def test_singles_and_pairs_that_begin_with(
    subject: Subject, hardlinks: bool, first: str, code: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    tasks = list(singles_and_pairs_beginning_with(first, catalogue_of(subject)))
    look_at(subject, tasks, first, code, request, tally, hardlinks)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("subject", "hardlinks", "first"), THREES)
def test_threes_that_begin_with(
    subject: Subject, hardlinks: bool, first: str, code: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    tasks = list(threes_beginning_with(first, catalogue_of(subject)))
    look_at(subject, tasks, f"{first} threes", code, request, tally, hardlinks)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("subject", "hardlinks"), SETTINGS)
def test_longer_workloads(
    subject: Subject, hardlinks: bool, code: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    found = longer(catalogue_of(subject)).values()
    tasks = [Task(names[:count], SHALLOW) for names in found for count in range(4, len(names) + 1)]
    look_at(subject, tasks, "longer", code, request, tally, hardlinks)
