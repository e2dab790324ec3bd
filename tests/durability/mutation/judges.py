"""Who judges a mutant: crash points, a quick selection of them, and the tests of the formats, the provider and of faults.

It stops at the first that fails; a mutant that makes the server fail outright is caught too. Who caught it the last time is
asked first; then what catches most in little time, so that a run over all mutants knows soon which may survive. For a check,
which is for damage more than for crashes, tests come first; a repair, which no server does, has no other judges.

*Rules*: nothing of the product is imported before the mutant is in place.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import attrs
import pytest

from tests.durability.mutation.mutants import ROOT, Kind, Mutant

TESTS = ("journal", "spool", "fsck", "clustered")
"""Directories of tests that judge; and those of faults."""

SLOW = ("test_calendar.py", "test_few_files.py", "test_idtable.py", "test_references.py", "test_references_machine.py")
"""Tests of them that are not asked soon."""

LONG = (
    *(
        "test_checkpoints.py",
        "test_clustered_contract.py",
        "test_log_contract.py",
        "test_chunk_contract.py",
        "test_take_over.py",
    ),
    *("test_plan.py", "test_dump.py"),
    *("test_log_fsck.py", "test_compaction.py"),
)
"""Tests of them that are asked behind the others."""

REPAIR = "fsck"
"""Whose mutants are judged by its own tests alone."""

REPAIRS = tuple(f"{REPAIR}/test_{name}.py" for name in ("actions", "executor", "quarantine", "repair_crashes"))
"""What is asked of them soon."""

_REAL = re.compile(r"real|rabbitmq|cassandra|swift")
MODELLED = tuple(
    f"distributed/{path.name}"
    for path in sorted((ROOT / "tests" / "distributed").glob("test_*.py"))
    if not _REAL.search(path.name)
)
"""Tests of the shared queue that need none of its services."""

NO_PROVIDERS = {
    "maildir": ("maildir", "chunks"),
    "convert": ("convert", "durability/crash/test_conversion_points.py"),
    "acts": ("queue/acts",),
    "distributed": MODELLED,
}
"""Who judges what is no provider: crash points and faults of it are among these. Also a provider without files."""

SHARED = {"mailismus/chunks/": ("chunks", "maildir")}
"""Packages under two uses: the tests of both judge them, whosever mutants are judged."""

FAULTS = ("damage", "killed_starts", "faults")
"""Of the faults those that stand beside those of the clustered provider."""

_FAR = re.compile(r"^(?:\.\.)?/\S*/(?=[^/\s]+/[^/\s]+:\d+)")
"""Where a library lies: its own directory tells enough."""

AT_ONCE, SOON = 20, 30
"""So many workloads are."""

CRASHES = "crash points: "


@attrs.frozen
class Judge:
    """Crash points: those workloads of the selection from `begin` to `end`, or the one called `only`; or tests."""

    tests: tuple[str, ...] = ()
    """Below `tests/`; none: crash points."""
    without: tuple[str, ...] = ()
    begin: int = 0
    end: int | None = None
    only: str = ""
    provider: str = "clustered"
    """Whose crash points."""
    order: tuple[str, ...] = ()
    """Of these tests those with these node IDs, and no others, in this order."""

    def ask(self) -> tuple[str, str]:
        """Who caught the mutant that is in place, and what was seen; empty: nobody, nothing."""
        found = (
            by_tests(self.tests, self.without, self.order)
            if self.tests
            else by_crash_points(self.provider, self.begin, self.end, self.only)
        )
        return next(found, ("", ""))


def soon(mutant: Mutant | None, first: str = "", provider: str = "clustered") -> list[Judge]:
    """Who is asked first, one after the other. None: about the source as it is. `first`: who caught it the last time."""
    if provider in NO_PROVIDERS:
        naming = tuple(name for name in _near(mutant, provider) if name in NO_PROVIDERS[provider])
        return [*by_memory(first, provider), *([Judge(naming)] if naming else []), Judge(NO_PROVIDERS[provider])]
    if provider != "clustered":
        return by_memory(first, provider) + _of_shared(mutant, provider) + _soon_of_another(mutant, provider)
    own = _own(mutant)
    narrow = [f"test_{PurePath(mutant.path).stem}.py" if mutant else "", "test_batch_checks.py", "test_read_checks.py"]
    found = tuple(f"{own}/{name}" for name in narrow if name and (ROOT / "tests" / own / name).exists())
    at_once, after = Judge(end=AT_ONCE), Judge(begin=AT_ONCE, end=SOON)
    near = [*([Judge(found)] if found else []), Judge((own,), (*SLOW, *LONG))]
    is_check = mutant is not None and mutant.kind is Kind.CHECK
    asked = [*near, at_once] if is_check else [at_once, *near]
    long = _there(own, LONG)
    asked += [*([Judge(long)] if long else []), after]
    if own == REPAIR:
        asked = [near[0], Judge(tuple(name for name in REPAIRS if name not in found))]
    return by_memory(first, provider) + asked


def by_memory(first: str, provider: str) -> list[Judge]:
    """Who caught it the last time."""
    if first.startswith(CRASHES):
        return [Judge(only=first.removeprefix(CRASHES), provider=provider)]
    return [Judge((first.removeprefix("tests/"),))] if first.startswith("tests/") else []


def _of_shared(mutant: Mutant | None, provider: str) -> list[Judge]:
    """About a package under two uses."""
    path = mutant.path if mutant is not None else ""
    return [Judge(tests, provider=provider) for package, tests in SHARED.items() if path.startswith(package)]


def _soon_of_another(mutant: Mutant | None, provider: str) -> list[Judge]:
    """About a provider beside the clustered one: the tests that name the module, its other quick tests, crash points, and
    its contract suite."""
    own = (provider,) if (ROOT / "tests" / provider / "__init__.py").exists() else ()
    tests = [Judge(own, LONG, provider=provider)] if own else []
    long = _there(provider, LONG)
    tests_last = [Judge(long, provider=provider)] if long else []
    crashes = by_all_crash_points(provider)
    is_check = mutant is not None and mutant.kind is Kind.CHECK
    asked = [*tests, *tests_last, *crashes] if is_check else [*tests, *crashes, *tests_last]
    near = _near(mutant, provider)
    return [Judge(near, provider=provider), *asked] if near else asked


def by_all_crash_points(provider: str) -> list[Judge]:
    """All workloads of the selection; those that take long at the end."""
    return [Judge(end=AT_ONCE, provider=provider), Judge(begin=AT_ONCE, provider=provider)]


def _near(mutant: Mutant | None, provider: str) -> tuple[str, ...]:
    """Tests of a provider that name the mutant's module; those that take long where no others do."""
    if mutant is None:
        return ()
    files = sorted((ROOT / "tests" / provider).glob("test_*.py"))
    found = [path.name for path in files if mutant.module in path.read_text()]
    return tuple(f"{provider}/{name}" for name in [name for name in found if name not in LONG] or found)


def quick(mutant: Mutant | None, provider: str = "clustered") -> list[Judge]:
    """Who is asked about a mutant that is said to be needless: some crash points, and the tests of its own module."""
    asked = soon(mutant, "", provider)
    return [judge for judge in asked if judge.end == AT_ONCE or _is_narrow(judge)] or asked[:1]


def _is_narrow(judge: Judge) -> bool:
    return bool(judge.tests) and all("/" in name for name in judge.tests) and len(judge.tests) <= 3


def late(mutant: Mutant | None, provider: str = "clustered") -> list[Judge]:
    """Who is asked then."""
    if provider in NO_PROVIDERS:
        return []
    if provider != "clustered":
        found = _there("durability/faults", [f"test_{provider}_{part}.py" for part in FAULTS])
        return [Judge(found, provider=provider)] if found else []
    own = _own(mutant)
    if own == REPAIR:
        return [Judge((REPAIR,))]
    others = tuple(directory for directory in TESTS if directory not in (own, REPAIR))
    slow = _there(own, SLOW)
    return [Judge(others), *([Judge(slow)] if slow else []), Judge(begin=SOON), Judge(("durability/faults",))]


def _there(own: str, names: Sequence[str]) -> tuple[str, ...]:
    """Those of these files that are there."""
    return tuple(f"{own}/{name}" for name in names if (ROOT / "tests" / own / name).exists())


def _own(mutant: Mutant | None) -> str:
    parts = PurePath(mutant.path).parts if mutant is not None else ()
    return next((directory for directory in TESTS if directory in parts), "clustered")


def by_crash_points(
    provider: str = "clustered", begin: int = 0, end: int | None = None, only: str = ""
) -> Iterator[tuple[str, str]]:
    """Who caught it and what was seen. Of the selection those from `begin` to `end`, or the one of this name."""
    from tests.durability.crash.catalogue import catalogue_of
    from tests.durability.crash.explorer import Explorer
    from tests.durability.crash.knowledge import Broken
    from tests.durability.crash.workloads import quick_selection
    from tests.durability.subjects.named import SUBJECTS

    subject = SUBJECTS[provider]
    for look in quick_selection(catalogue_of(subject))[begin:end]:
        if only not in ("", str(look)):
            continue
        try:
            explorer = Explorer(subject, hardlinks=look.before, then=look.after)
            explorer.explore(look.task.names, look.task.depth, whole=len(look.task.names) > 1)
        except Broken as broken:
            yield f"{CRASHES}{look}", str(broken).split("\n")[0]
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            yield f"{CRASHES}{look}", f"fails outright: {error!r} in {last.name}"


def by_tests(names: Sequence[str], without: Sequence[str] = (), order: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """The same. `names`: below `tests/`. `order`: of these tests those with these node IDs, in this order."""
    places = {node_id: place for place, node_id in enumerate(order)}

    class Listener:
        failed: tuple[str, str] | None = None

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            if places:
                items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and self.failed is None:
                self.failed = report.nodeid, _FAR.sub("", report.longreprtext.strip().split("\n")[-1])

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed and self.failed is None:
                self.failed = report.nodeid, "can't be imported"

    listener = Listener()
    paths = [str(ROOT / "tests" / name) for name in names]
    left_out = [f"--ignore-glob=*/{name}" for name in without]
    pytest.main([*paths, *left_out, "-x", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}"], plugins=[listener])
    if listener.failed is not None:
        yield listener.failed
