"""Barriers a server makes, counted from a system call trace (the parsing is pure).

A barrier is a call of fsync, fdatasync, sync_file_range, msync, syncfs or sync, and a write with RWF_DSYNC or RWF_SYNC.
A file opened with O_DSYNC or O_SYNC makes every write one; those writes are not traced (that would slow everything and make
batches look bigger), so such opens are counted apart: where there are any, the number of barriers is a lower bound.
strace stops, by its seccomp filter, only at these calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import attrs

from benchmarks.stage.load import program

BARRIERS = frozenset(("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync"))
TRACED = (*sorted(BARRIERS), "pwritev2", "open", "openat", "openat2")
# `123 1700000000.123456 fdatasync(7) = 0`; a call that another thread interrupts is cut at `<unfinished ...>`.
LINE = re.compile(r"(?:\d+\s+)?(?P<at>\d+\.\d+)\s+(?P<name>\w+)\((?P<rest>.*)")


@attrs.frozen
class Barriers:
    """What was counted in one window; `dsync_opens` above 0 makes `count` a lower bound."""

    count: int
    by_call: dict[str, int]
    dsync_opens: int


def command(trace: Path) -> list[str]:
    """The command line to put in front of a server's."""
    return [
        program("strace"),
        "-f",
        "-qq",
        "--seccomp-bpf",
        "-ttt",
        "-o",
        str(trace),
        "-e",
        "trace=" + ",".join(TRACED),
        "-e",
        "signal=none",
    ]


def count(lines: Iterable[str], begin_at: float, end_at: float) -> Barriers:
    """Counts the barriers begun between two moments (epoch seconds); opens of the whole trace."""
    calls: dict[str, int] = {}
    opens = 0
    for line in lines:
        match = LINE.match(line)
        if match is None:
            continue
        name, rest = match["name"], match["rest"]
        if name.startswith("open"):
            opens += "O_DSYNC" in rest or "O_SYNC" in rest
            continue
        if name == "pwritev2":
            if "RWF_DSYNC" not in rest and "RWF_SYNC" not in rest:
                continue
        elif name not in BARRIERS or (name == "msync" and "MS_SYNC" not in rest):
            continue
        if begin_at <= float(match["at"]) <= end_at:
            calls[name] = calls.get(name, 0) + 1
    return Barriers(sum(calls.values()), calls, opens)
