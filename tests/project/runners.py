"""The three ways of starting, as processes: what a test needs to start one, await its ready line and end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
TWISTD = (sys.executable, "-c", "from twisted.scripts.twistd import run; run()")
TWIST = (sys.executable, "-c", "from twisted.application.twist._twist import Twist; Twist.main()")
WAYS: dict[str, tuple[str, ...]] = {
    "foreground": (*TWISTD, "-n", "--pidfile="),
    "daemon": (*TWISTD, "--pidfile=twistd.pid"),
    "twist": TWIST,
}


def with_code_before(way: str, code: str) -> list[str]:
    """The words of one way of starting, in a process that runs `code` first."""
    python, flag, run, *options = WAYS[way]
    return [python, flag, f"{code}\n{run}", *options]


PATIENCE_S = 60.0


def environment() -> dict[str, str]:
    """The environment of a process that finds this tree, installed or not."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def clean_environment() -> dict[str, str]:
    """Return the environment of a process that finds only what is installed."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP", "VIRTUAL_ENV"))}


def command(way: str, config: str) -> list[str]:
    """The command line of one way of starting."""
    return [*WAYS[way], "mailismus", "--config", config]


def await_text(path: Path, text: str) -> str:
    """What is in a file once `text` is in it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = path.read_text() if path.exists() else ""
        if text in found and found.endswith("\n"):
            return found
        time.sleep(0.02)
    raise AssertionError(f"{text!r} never came to {path}: {path.read_text() if path.exists() else 'no file'}")


@contextmanager
def running(arguments: Sequence[str], directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process in the foreground and the file that its output goes to; killed at the end if it is still there."""
    path = directory / "output"
    with path.open("wb") as output:
        process = subprocess.Popen(
            arguments, cwd=directory, env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process, path
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def end_daemon(pid: int) -> None:
    """Ask a process that is not our child to end, and see that it does."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("the daemon did not end")
