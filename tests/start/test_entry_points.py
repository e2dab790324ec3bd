"""Entry points: Ctrl-C while modules are loaded leaves no traceback, and one that is ignored stays so."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys
class Pressing:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
sys.argv = [{name!r}, "--help"]
from mailismus import programs
raise SystemExit(programs.{entry}())
"""
ENTRIES = [("mailismus", "manage", "mailismus.__main__"), ("sendmail", "main", "mailismus.sendmail.command")]


def run(name: str, entry: str, module: str) -> subprocess.CompletedProcess[str]:
    code = PROGRAM.format(name=name, entry=entry, module=module)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("name", "entry", "module"), ENTRIES)
def test_ctrl_c_while_modules_are_loaded_ends_it_quietly(name: str, entry: str, module: str) -> None:
    done = run(name, entry, module)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(("name", "entry", "module"), ENTRIES)
def test_ctrl_c_that_is_ignored_stays_ignored(name: str, entry: str, module: str) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = run(name, entry, module)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 0, done.stderr
    assert "usage: " in done.stdout


@pytest.mark.parametrize(("words", "status"), [("--version", 0), ("queue", 64), ("--config /nowhere queue list", 78)])
def test_streams_may_be_closed(words: str, status: int) -> None:
    command = f"{sys.executable} -m mailismus {words} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], timeout=60, check=False).returncode == status
