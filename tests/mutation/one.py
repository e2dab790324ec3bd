"""Judges one mutant, in a process of its own: `python -m tests.mutation.one NAME` prints who caught it, as one line of JSON.

The crash points, a quick selection of them, and the tests of the formats and of the provider; these come first for a check,
which is for damage more than for crashes. It stops at the first that fails; a mutant that makes the server fail outright is
caught too. Who caught it the last time is asked first. What catches most in little time is asked before the rest, so that
a run over all mutants knows soon which may survive.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import io
import json
import resource
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tests.mutation.hook import install
from tests.mutation.mutants import ROOT, Kind, Mutant, find, sources

TESTS = ("journal", "spool", "clustered", "faults")
"""Directories of tests that judge."""

SLOW = ("test_calendar.py", "test_few_files.py")
"""Tests of them that are not asked soon."""

SOONEST = 30
"""So many workloads are."""

CRASHES = "crash points: "

LONGEST_CPU_S = 900
"""Seconds of a processor after which a mutant is ended: it hangs, and is caught."""

MOST_MEMORY = 2 << 30
"""Bytes of memory that a mutant may use up."""

NOT_THERE = 3
"""Exit code: the mutant can't be made."""

Judge = Callable[[], Iterator[tuple[str, str]]]


class Part(enum.Enum):
    """Who is asked."""

    SOON = "soon"
    LATE = "late"
    """The rest."""


def main(name: str, part: Part, first: str = "") -> None:
    """Judge the mutant of this name; the empty name is the source as it is. `first`: who caught it the last time."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_CPU_S, LONGEST_CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    mutant = None
    if name:
        try:
            mutant = next(mutant for mutant in find(sources()) if mutant.name == name)
            install(mutant)
        except Exception:
            traceback.print_exc()
            sys.exit(NOT_THERE)
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
        judges = _judges(mutant, part, first)
        by, why = next((found for judge in judges for found in judge()), ("", ""))
    print(json.dumps({"name": name, "by": by, "why": why}))


def _judges(mutant: Mutant | None, part: Part, first: str) -> list[Judge]:
    path = "" if mutant is None else mutant.path
    own = next((directory for directory in TESTS if f"/{directory}/" in path), "clustered")
    if part is Part.LATE:
        slow = [f"clustered/{name}" for name in SLOW]
        return [
            partial(by_crash_points, SOONEST, None),
            partial(by_tests, [*(directory for directory in TESTS if directory != own), *slow]),
        ]
    judges: list[Judge] = [partial(by_crash_points, 0, SOONEST), partial(by_tests, [own], SLOW)]
    if mutant is not None and mutant.kind is Kind.CHECK:
        judges.reverse()
    if first.startswith(CRASHES):
        judges.insert(0, partial(by_crash_points, only=first.removeprefix(CRASHES)))
    elif first:
        judges.insert(0, partial(by_tests, [first.removeprefix("tests/")]))
    return judges


def by_crash_points(begin: int = 0, end: int | None = None, only: str = "") -> Iterator[tuple[str, str]]:
    """Who caught it and what was seen. Of the selection those from `begin` to `end`, or the one of this name."""
    from tests.crash.explorer import Explorer
    from tests.crash.knowledge import Broken
    from tests.crash.workloads import quick_selection

    for look in quick_selection()[begin:end]:
        if only not in ("", str(look)):
            continue
        try:
            explorer = Explorer(hardlinks=look.before, then=look.after)
            explorer.explore(look.task.names, look.task.depth, whole=len(look.task.names) > 1)
        except Broken as broken:
            yield f"{CRASHES}{look}", str(broken).split("\n")[0]
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            yield f"{CRASHES}{look}", f"fails outright: {error!r} in {last.name}"


def by_tests(names: Sequence[str], without: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """The same. `names`: below `tests/`."""
    import pytest

    class Listener:
        failed: tuple[str, str] | None = None

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and self.failed is None:
                self.failed = report.nodeid, report.longreprtext.strip().split("\n")[-1]

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed and self.failed is None:
                self.failed = report.nodeid, "can't be imported"

    listener = Listener()
    paths = [str(ROOT / "tests" / name) for name in names]
    left_out = [f"--ignore-glob=*/{name}" for name in without]
    pytest.main([*paths, *left_out, "-x", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}"], plugins=[listener])
    if listener.failed is not None:
        yield listener.failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.one")
    parser.add_argument("name")
    parser.add_argument("--first", default="")
    parser.add_argument("--part", type=Part, default=Part.SOON)
    options = parser.parse_args()
    main(options.name, options.part, options.first)
    sys.stdout.flush()
