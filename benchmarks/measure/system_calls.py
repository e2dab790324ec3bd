"""System calls a message by kind, from a trace of a server under load by strace (the parsing is pure).

All calls of all its processes and threads are traced, each with the moment at which it began. Tracing stops the server
twice at each call: it is slowed, and so waits less often for events (epoll_wait) and makes fewer barriers a message than
at full speed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.measure.barriers import LINE
from benchmarks.results.report import number, table
from benchmarks.results.workloads import Workload
from benchmarks.stage.contenders import Contender, maker
from benchmarks.stage.directories import Stage
from benchmarks.stage.load import program
from benchmarks.stage.providers import CLUSTERED, ServedProvider
from benchmarks.stage.running import LOADS, Loads, load_twice, started

_ERROR = re.compile(r"= -1 (E\w+)")
_OPERATION = re.compile(r"EPOLL_CTL_(ADD|MOD|DEL)")
_OPTION = re.compile(r"\b(SO_[A-Z]+|TCP_[A-Z]+|FION[A-Z]+|SIO[A-Z]+|TC[A-Z]+)\b")
_RESUMED = re.compile(r"(?P<thread>\d+)\s+\d+\.\d+\s+<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)")
_THREAD = re.compile(r"(\d+)\s")


def command(trace: Path) -> list[str]:
    """The command line to put in front of a server's."""
    return [program("strace"), "-f", "-qq", "-ttt", "-s", "0", "-e", "signal=none", "-o", str(trace)]


def kind_of(name: str, rest: str) -> str:
    """A call's kind: its name, the operation or option that it is about, and the error that it ended with."""
    words = [name]
    if name == "epoll_ctl" and (operation := _OPERATION.search(rest)):
        words.append(operation[1].lower())
    elif name in ("getsockopt", "setsockopt", "ioctl") and (option := _OPTION.search(rest)):
        words.append(option[1])
    if error := _ERROR.search(rest):
        words.append(error[1])
    return " ".join(words)


def count(lines: Iterable[str], spans: Sequence[tuple[float, float]]) -> list[dict[str, int]]:
    """Calls by kind, of each span (epoch seconds) in which they began."""
    found: list[dict[str, int]] = [{} for _ in spans]
    begun: dict[str, tuple[float, str]] = {}

    def add(at: float, kind: str) -> None:
        for span, counts in zip(spans, found, strict=True):
            if span[0] <= at < span[1]:
                counts[kind] = counts.get(kind, 0) + 1

    for line in lines:
        if resumed := _RESUMED.match(line):
            at, arguments = begun.pop(resumed["thread"], (0.0, ""))
            add(at, kind_of(resumed["name"], arguments + resumed["rest"]))
        elif match := LINE.match(line):
            thread = _THREAD.match(line)
            if thread and match["rest"].endswith("<unfinished ...>"):
                begun[thread[1]] = (float(match["at"]), match["rest"])
            else:
                add(float(match["at"]), kind_of(match["name"], match["rest"]))
    return found


@attrs.frozen
class SystemCalls:
    """Calls a message by kind."""

    by_kind: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self.by_kind.values())

    @property
    def failed(self) -> float:
        """Those that ended with an error: EAGAIN, where there was nothing to receive yet."""
        return sum(count for kind, count in self.by_kind.items() if kind.split()[-1][:1] == "E")


def count_system_calls(
    contender: Contender, at: Stage, workload: Workload, loads: Loads | None = None, provider: ServedProvider = CLUSTERED
) -> SystemCalls:
    """System calls a message of a server of its own. Raises: TrialError."""
    loads, trace = loads or LOADS[workload.name], at.root / f"trace-{contender.name}"
    try:
        with started(maker(contender, provider), at, command(trace)) as running:
            [(before, between, after)] = load_twice(running, workload, loads, time.time)
        with trace.open(errors="replace") as lines:
            first, second = count((line.rstrip("\n") for line in lines), [(before, between), (between, after)])
    finally:
        trace.unlink(missing_ok=True)
    return SystemCalls(loads.difference(first, second))


def kinds_table(counted: Mapping[str, SystemCalls], least: float = 0.02) -> str:
    """A row a kind, most frequent first; kinds below `least` calls a message of every server are one row."""
    kinds = {
        kind: max(calls.by_kind.get(kind, 0.0) for calls in counted.values())
        for calls in counted.values()
        for kind in calls.by_kind
    }
    shown = sorted((kind for kind, most in kinds.items() if most >= least), key=lambda kind: (-kinds[kind], kind))
    rows = [[kind, *(number(calls.by_kind.get(kind, 0.0)) for calls in counted.values())] for kind in shown]
    rest = [calls.total - sum(calls.by_kind.get(kind, 0.0) for kind in shown) for calls in counted.values()]
    rows.append(["others", *map(number, rest)])
    rows.append(["all", *(number(calls.total) for calls in counted.values())])
    rows.append(["of them failed", *(number(calls.failed) for calls in counted.values())])
    return table(["system call", *counted], rows)


RECEIVED, SENT, READ, WRITTEN = "received", "sent", "read from files", "written to files"
_MOVES = {
    **dict.fromkeys(("recvfrom", "recvmsg"), RECEIVED),
    **dict.fromkeys(("sendto", "sendmsg", "sendfile"), SENT),
    **dict.fromkeys(("read", "readv", "pread64", "preadv", "preadv2"), READ),
    **dict.fromkeys(("write", "writev", "pwrite64", "pwritev", "pwritev2"), WRITTEN),
}
_RESULT = re.compile(r"= (\d+)(?: |$)")


def bytes_moved(lines: Iterable[str], span: tuple[float, float]) -> dict[str, int]:
    """Bytes that calls ended in a span moved between the process and the kernel, by way."""
    found: dict[str, int] = {}
    for line in lines:
        match = _RESUMED.match(line) or LINE.match(line)
        way = _MOVES.get(match["name"]) if match else None
        if match is None or way is None or line.endswith("<unfinished ...>"):
            continue
        at = float(line.split()[1])
        results = _RESULT.findall(match["rest"])
        if results and span[0] <= at < span[1]:
            found[way] = found.get(way, 0) + int(results[-1])
    return found
