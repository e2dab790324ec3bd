"""What was measured, in a file: runs, single calls, disk, large queues. A new measurement replaces an earlier one; of runs
of one load that which needed the least of the processor counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.distributed.figures import DEFAULT_SLICE_S, Run, from_json, to_json
from benchmarks.distributed.large import Large, Step
from benchmarks.distributed.prices import Price

DEFAULT = Path("docs/evidence/distributed-figures.json")


@attrs.frozen
class Figures:
    """All of it. `disk`: by run, bytes and files a message. `machine`: in words."""

    machine: str = ""
    runs: Sequence[Run] = ()
    disk: Mapping[str, Mapping[str, float]] = attrs.field(factory=dict)
    profile: str = ""
    prices: Sequence[Price] = ()
    large: Sequence[Large] = ()

    def with_run(self, run: Run, disk: Mapping[str, float]) -> Figures:
        """A run beside earlier ones of the same load: that counts which needed the least of our processor, with the least
        that each service needed. What else the machine does only adds."""
        before = [one for one in self.runs if key_of(one) == key_of(run)]
        if any(one.message.cpu_ms <= run.message.cpu_ms for one in before):
            (old,) = before
            return attrs.evolve(self, runs=[_with_least(one, run) if one is old else one for one in self.runs])
        for one in before:
            run = _with_least(run, one)
        others = [one for one in self.runs if key_of(one) != key_of(run)]
        runs = sorted([*others, run], key=lambda one: (one.servers, -one.slice_s, one.turns, one.recipients))
        return attrs.evolve(self, runs=runs, disk={**self.disk, key_of(run): disk})

    def with_large(self, large: Large) -> Figures:
        """A queue of so many entries in place of an earlier one."""
        others = [one for one in self.large if one.entries != large.entries]
        return attrs.evolve(self, large=sorted([*others, large], key=lambda one: one.entries))

    def run(self, servers: int, recipients: int = 1, turns: int = 0, slice_s: int = DEFAULT_SLICE_S) -> Run:
        """Of this load. Raises: LookupError."""
        for one in self.runs:
            if (one.servers, one.recipients, one.turns, one.slice_s) == (servers, recipients, turns, slice_s):
                return one
        raise LookupError(f"not measured: {servers} servers, {recipients} recipients, deferred {turns} times")


def _with_least(run: Run, other: Run) -> Run:
    least = {name: min(value, other.message.service_ms[name]) for name, value in run.message.service_ms.items()}
    return attrs.evolve(run, message=attrs.evolve(run.message, service_ms=least))


def key_of(run: Run) -> str:
    """By which its disk is found."""
    return f"{run.servers} x {run.name}"


def read(path: Path) -> Figures:
    """Of a file; empty: there is none."""
    if not path.exists():
        return Figures()
    row: dict[str, Any] = json.loads(path.read_text())
    return Figures(
        row["machine"],
        [from_json(one) for one in row["runs"]],
        row["disk"],
        row["profile"],
        [Price(**one) for one in row["prices"]],
        [Large(**{**one, "steps": tuple(Step(**step) for step in one["steps"])}) for one in row["large"]],
    )


def write(path: Path, figures: Figures) -> None:
    """To a file, in place of what it had."""
    row = attrs.asdict(figures) | {"runs": [to_json(one) for one in figures.runs]}
    path.write_text(json.dumps(_rounded(row), indent=1) + "\n")


def _rounded(value: Any) -> Any:
    """With as many digits as mean something."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
