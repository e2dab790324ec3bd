"""Calls a message: of Python functions and of functions in C, by part of the hot path. The counting: `call_counter`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from benchmarks.measure.budget import BUDGET_US, FRAME, RECEIVE, REST, share_out
from benchmarks.measure.call_counter import SNAPSHOT
from benchmarks.results.report import number, table
from benchmarks.results.workloads import Workload
from benchmarks.stage.contenders import Contender, extras_of
from benchmarks.stage.directories import Stage
from benchmarks.stage.providers import CLUSTERED, ServedProvider
from benchmarks.stage.running import LOADS, Loads, load_twice, started
from benchmarks.stage.servers import TREE, Other, Ours, Place
from tests.support.processes import TrialError, wait_until

COUNTER = TREE / "benchmarks" / "measure" / "call_counter.py"
SNAPSHOT_S = 60.0
Key = tuple[str, str, str]
"""`PYTHON` or `C`, function, part."""
PYTHON, C = "python", "c"


@attrs.frozen
class Calls:
    """Calls a message, by kind, function and part; the part RECEIVE is not shared out yet."""

    by_function: Mapping[Key, float]
    has_parts: bool = True
    """Whether the rules know the program; if not, all that is not a rule's is the rest, what comes of receiving included."""

    def by_part(self, kind: str, workload: Workload) -> dict[str, float]:
        """Of one kind; receiving is shared out as in the budget."""
        found = dict.fromkeys(BUDGET_US, 0.0)
        received = 0.0
        for (found_kind, _, part), count in self.by_function.items():
            if found_kind != kind:
                continue
            if part == RECEIVE:
                received += count
            else:
                found[part] = found.get(part, 0.0) + count
        if self.has_parts:
            share_out(found, received, workload)
        else:
            found[REST] += received
        return found

    def of_parts(self, workload: Workload) -> dict[str, float]:
        """Of both kinds together, by part."""
        python, c = self.by_part(PYTHON, workload), self.by_part(C, workload)
        return {part: python.get(part, 0.0) + c.get(part, 0.0) for part in {**python, **c}}

    def total(self, kind: str) -> float:
        """Of one kind."""
        return sum(count for (found, _, _), count in self.by_function.items() if found == kind)

    def most(self, limit: int) -> list[tuple[str, str, float]]:
        """The functions with most calls, of both kinds: function, parts, calls a message."""
        counts: dict[tuple[str, str], float] = {}
        parts: dict[tuple[str, str], dict[str, float]] = {}
        for (kind, function, part), count in self.by_function.items():
            key = (kind, function)
            counts[key] = counts.get(key, 0.0) + count
            parts.setdefault(key, {})[part] = parts.get(key, {}).get(part, 0.0) + count
        ordered = sorted(counts.items(), key=lambda item: -item[1])[:limit]
        return [
            (short(key[1]) if key[0] == PYTHON else f"{key[1]} (C)", most_of(parts[key]), count) for key, count in ordered
        ]


def most_of(parts: Mapping[str, float]) -> str:
    """The parts that have at least a tenth of all, the greatest first."""
    total = sum(parts.values())
    return ", ".join(part for part, count in sorted(parts.items(), key=lambda item: -item[1]) if count >= total / 10)


def short(label: str) -> str:
    """A label with its path from the package on."""
    found = FRAME.match(label)
    if found is None:
        return label
    path = found["path"]
    for package in ("mailismus/", "twisted/"):
        at = path.rfind("/" + package)
        path = path[at + 1 :] if at >= 0 else path
    return f"{found['function']} ({path})"


def parse(text: str) -> dict[Key, int]:
    """A snapshot."""
    rows = json.loads(text)
    found: dict[Key, int] = {}
    for kind in (PYTHON, C):
        for function, part, count in rows[kind]:
            found[kind, function, part] = found.get((kind, function, part), 0) + count
    return found


def minus(after: Mapping[Key, int], before: Mapping[Key, int]) -> dict[Key, int]:
    """What came since."""
    return {key: count - before.get(key, 0) for key, count in after.items()}


class Snapshots:
    """The snapshots of one server."""

    def __init__(self, directory: Path, pid: int) -> None:
        self._directory, self._pid, self._taken = directory, pid, 0

    def take(self) -> dict[Key, int]:
        """The counts so far. Raises: TrialError."""
        self._taken += 1
        path = self._directory / f"calls.{self._taken}"
        os.kill(self._pid, SNAPSHOT)
        wait_until(path.exists, SNAPSHOT_S, "the counts of calls")
        return parse(path.read_text())


def counted(directory: Path, arguments: Iterable[str]) -> list[str]:
    """What the interpreter is given to run a program with its calls counted; `arguments`: to run it without."""
    return ["-P", str(COUNTER), str(directory), *arguments]


class CountedOurs(Ours):
    """Mailismus, counted. The rules are those of its own tree."""

    def program(self, place: Place) -> list[str]:
        """The counter in front."""
        return counted(place.logs, super().program(place))


class CountedOther(Other):
    """Another server in Python, counted. Its command begins with the interpreter and the program."""

    def __init__(self, template: str, label: str = "") -> None:
        interpreter, *arguments = shlex.split(template)
        if "python" not in Path(interpreter).name:
            raise TrialError(f"{interpreter}: calls are counted of Python programs only: PYTHON PROGRAM ARGUMENTS...")
        environment = ["env", f"PYTHONPATH={TREE}"]
        super().__init__(shlex.join([*environment, interpreter, *counted(Path("{directory}"), arguments)]), label)


def count_calls(
    contender: Contender, at: Stage, workload: Workload, loads: Loads | None = None, provider: ServedProvider = CLUSTERED
) -> Calls:
    """Calls a message of a server of its own. Raises: TrialError."""
    loads = loads or LOADS[workload.name]

    def make() -> Ours | Other:
        if contender.command:
            return CountedOther(contender.command, contender.name)
        return CountedOurs(contender.name, contender.tree, extras_of(provider), provider)

    with started(make, at) as running:
        server, _, place = running
        snapshots = Snapshots(place.directory if contender.command else place.logs, server.pid)
        [(before, between, after)] = load_twice(running, workload, loads, snapshots.take)
    return Calls(loads.difference(minus(between, before), minus(after, between)), has_parts=not contender.command)


def parts_table(counted_servers: Mapping[str, Calls], workload: Workload) -> str:
    """Calls a message by part: a row a part, Python and C of each server side by side."""
    header, columns = ["part"], list[dict[str, float]]()
    for name, calls in counted_servers.items():
        for kind in (PYTHON, C):
            header.append(f"{name} {'Python' if kind == PYTHON else 'C'}")
            columns.append(calls.by_part(kind, workload))
    rows = [[part, *(number(column.get(part, 0.0)) for column in columns)] for part in BUDGET_US]
    totals = [sum(column.values()) for column in columns]
    return table(header, [*rows, ["all", *map(number, totals)]])


def functions_table(calls: Calls, limit: int = 40) -> str:
    """The functions with most calls a message."""
    rows = [[function, part, number(count)] for function, part, count in calls.most(limit)]
    return table(["function", "part", "calls/msg"], rows)
