"""Telling: one run of all tests over the source as it is tells what each of them runs, by a note at the begin of each
function that is judged."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest

from tests.durability.mutation.hook import install_notes
from tests.durability.mutation.judges import MODELLED
from tests.durability.mutation.mutants import ROOT
from tests.durability.mutation.reach import ALWAYS, Reach

ASKED = {
    "chunk": (
        *("chunk", "chunks", "maildir", "convert"),
        *("durability/crash/test_chunk_points.py", "durability/faults/test_chunk_faults.py"),
    ),
    "distributed": MODELLED,
}
"""Of providers that are judged by reach, the tests that are asked."""

Told = dict[str, tuple[float, list[str]]]


class _Listener:
    """Of pytest: what each test runs, with its fixtures."""

    def __init__(self, functions: set[str]) -> None:
        self._functions = functions
        self.told: Told = {}
        self.always: set[str] = set()
        self.failed: list[str] = []
        self._began = 0.0

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logstart(self) -> None:
        if not self.told:
            self.always |= self._functions  # imports
        self._functions.clear()
        self._began = time.process_time()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.told[nodeid] = time.process_time() - self._began, sorted(self._functions)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        before = set(self._functions)
        self._functions.clear()
        found = yield
        if fixturedef.scope != "function":
            self.always |= self._functions
        self._functions |= before
        return found


def reach_of(provider: str, path: Path | None, code: str) -> Reach | None:
    """What is run by what. It is kept in this file with `code`, a fingerprint. None: this provider is not judged so. Raises
    `ValueError` where something fails over the source as it is."""
    if provider not in ASKED:
        return None
    if path is not None and path.exists():
        of_code, told = json.loads(path.read_text())
        if of_code == code:
            return Reach.from_json(told)
    with tempfile.TemporaryDirectory() as directory:
        reach = Reach.from_json(_in_a_child(partial(_tell, provider), Path(directory) / "told"))
    if path is not None:
        path.write_text(json.dumps([code, reach.to_json()]))
    return reach


def _tell(provider: str) -> Told:
    functions: set[str] = set()
    install_notes(provider, functions.add)
    listener = _Listener(functions)
    paths = [str(ROOT / "tests" / name) for name in ASKED[provider]]
    pytest.main([*paths, "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}"], plugins=[listener])
    if listener.failed:
        raise ValueError(f"fails over the source as it is: {listener.failed}")
    return {ALWAYS: (0.0, sorted(listener.always)), **listener.told}


def _in_a_child(tell: Callable[[], Told], path: Path) -> Told:
    """In a process of its own, which alone imports the product, and writes to this file. Raises `ValueError` for whatever is
    raised there."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        said: tuple[str, Told] = "", {}
        noise = io.StringIO()
        try:
            with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
                said = "", tell()
        except BaseException:
            said = traceback.format_exc(), {}
        path.write_text(json.dumps(said))
        os._exit(0)
    os.waitpid(pid, 0)
    if not path.exists():
        raise ValueError("the process that tells what is run was ended")
    error, found = json.loads(path.read_text())
    if error:
        raise ValueError(error)
    told: Told = found
    return told
