"""A profile of a running server under load, by py-spy (pip install py-spy), and what each of its threads uses."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import attrs

from benchmarks.measure.budget import Profile
from tests.support.processes import TrialError, start

RATE_HZ = 500
WEIGH_S = 1.0


@attrs.frozen
class Taken:
    """A profile and the processor seconds of each thread in a second of the same load just before it."""

    profile: Profile
    thread_cpu_s: dict[int, float]


def thread_cpu_s(pid: int) -> dict[int, float]:
    """Processor seconds of each living thread of a process so far."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            found[int(tid)] = int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def profiler() -> str | None:
    """The path of py-spy, beside this interpreter or in the search path; None where there is none."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def record(pid: int, directory: Path, seconds: int) -> Taken:
    """Samples the process for some seconds. Raises: TrialError.

    Threads are weighed before that: sampling stops and wakes them all, which costs idle ones as much as busy ones.
    """
    binary = profiler()
    if binary is None:
        raise TrialError("py-spy is not installed (pip install py-spy)")
    raw = directory / "profile.raw"
    before = thread_cpu_s(pid)
    time.sleep(WEIGH_S)
    after = thread_cpu_s(pid)
    argv = [binary, "record", "--rate", str(RATE_HZ), "--duration", str(seconds), "--format", "raw", "--threads"]
    with start("py-spy", [*argv, "--output", str(raw), "--pid", str(pid)], directory) as process:
        if process.wait(seconds * 3 + 60):
            raise TrialError(process.complaint())
    used = {tid: now - before.get(tid, 0.0) for tid, now in after.items()}
    return Taken(Profile.parse(raw.read_text().splitlines()), used)
