"""Instructions a message, in user mode, of a server that runs under valgrind's tool callgrind.

The one figure of processor time here that the use of the machine by others hardly changes. Rules: the counting begins
behind the start, and each load is dumped by itself, so that one start serves all workloads; all threads count, child
processes do not. Valgrind slows the server some fifty times: what happens by the clock happens more often a message than at
full speed (flushing by age is put off: `LASTING`), and batches are of another size, which is most of the noise.
Not here: the kernel's part; by part of the program (`calls`).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.results.workloads import Workload
from benchmarks.stage.contenders import Contender, maker
from benchmarks.stage.directories import Stage
from benchmarks.stage.load import program
from benchmarks.stage.providers import CLUSTERED, ServedProvider
from benchmarks.stage.running import LOADS, load_twice, started
from tests.support.processes import TrialError, wait_until

ASK_S = 60.0
TURNS: Mapping[str, int] = {"W1": 2, "W2": 2, "W3": 3, "W4": 2}
"""Pairs of loads by workload; the least counts, since smaller batches and divided transactions only ever add to it."""
_NAMED = re.compile(r"(c?fn)=\((\d+)\)(?: (.*))?")
_COST = re.compile(r"(?:[+-]?\d+|\*|0x[0-9a-f]+) (\d+)$")


def is_installed() -> bool:
    """Whether valgrind and its messenger are there."""
    try:
        return bool(program("valgrind") and program("vgdb"))
    except TrialError:
        return False


@attrs.frozen
class Dump:
    """Instructions of one span: in all, by function, and by function and caller with what the function called included."""

    total: int
    own: Mapping[str, int]
    called: Mapping[tuple[str, str], int]
    """By (function, caller): all that these calls cost."""

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Dump:
        """From callgrind's format."""
        total, names = 0, dict[str, str]()
        own: dict[str, int] = {}
        called: dict[tuple[str, str], int] = {}
        function = callee = ""
        is_call = False
        for raw in lines:
            line = raw.rstrip("\n")
            if named := _NAMED.match(line):
                if named[3]:
                    names[named[2]] = named[3]
                if named[1] == "fn":
                    function = names[named[2]]
                else:
                    callee = names[named[2]]
            elif line.startswith("calls="):
                is_call = True
            elif cost := _COST.match(line):
                if is_call:
                    key = (callee, function)
                    called[key] = called.get(key, 0) + int(cost[1])
                    is_call = False
                else:
                    own[function] = own.get(function, 0) + int(cost[1])
            elif line.startswith("totals:"):
                total = int(line.split()[1])
        return cls(total, own, called)


def command(file: Path) -> list[str]:
    """The command line to put in front of a server's."""
    options = ["--tool=callgrind", "--instr-atstart=no", "--fair-sched=try"]
    return [program("valgrind"), *options, f"--callgrind-out-file={file}", f"--log-file={file}.log"]


class Callgrind:
    """The tool in a running server."""

    def __init__(self, file: Path, pid: int) -> None:
        self._file, self._pid, self._dumps = file, pid, 0
        self._ask("instrumentation", "on")

    def dump(self) -> Dump:
        """What was counted since the last one. Raises: TrialError."""
        self._dumps += 1
        path = self._file.with_name(f"{self._file.name}.{self._dumps}")
        self._ask("dump")
        wait_until(path.exists, ASK_S, f"callgrind to write {path}")
        with path.open(errors="replace") as lines:
            found = Dump.parse(lines)
        path.unlink()
        return found

    def _ask(self, *words: str) -> None:
        argv = [program("vgdb"), f"--pid={self._pid}", *words]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=ASK_S, check=False)
        except subprocess.TimeoutExpired:
            raise TrialError(f"valgrind did not answer within {ASK_S:.0f} s: {' '.join(words)}") from None
        if done.returncode:
            raise TrialError(f"vgdb {' '.join(words)}: {done.stderr.decode('utf-8', 'replace').strip()}")


def count_instructions(
    contender: Contender, at: Stage, workloads: Sequence[Workload], provider: ServedProvider = CLUSTERED
) -> dict[str, float]:
    """Instructions a message by workload, all in one server. Raises: TrialError."""
    file, found = at.root / f"callgrind-{contender.name}", {}
    with started(maker(contender, provider), at, command(file)) as running:
        tool = Callgrind(file, running[0].pid)
        for workload in workloads:
            loads = LOADS[workload.name]
            marks = load_twice(running, workload, loads, lambda: tool.dump().total, TURNS[workload.name])
            more = loads.second - loads.first
            found[workload.name] = min((second - first) / more for _, first, second in marks)
    return found
