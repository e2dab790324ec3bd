"""Results of the main path as values and as Markdown (pure)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import attrs


@attrs.frozen
class Run:
    """One server under one workload once. Rates are messages a second; `barriers` is filled by a run of its own."""

    server: str
    workload: str
    messages: int
    accepted_per_s: float
    delivered_per_s: float
    cpu_ms: float
    cpu_user_share: float
    pss_bytes: int
    processes: int
    others_share: float
    whole_handshakes: int = 0
    resumed_handshakes: int = 0
    """TLS handshakes with the sink."""
    device_kib: float = 0.0
    """Written to the device below the queue a message, by all its users."""
    barriers: float | None = None
    """A message, where the server itself counts them."""


@attrs.frozen
class Spread:
    """Median with least and greatest."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value or more."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self) -> str:
        """With about three figures."""
        return f"{number(self.median)} ({number(self.least)}-{number(self.greatest)})"


def number(value: float) -> str:
    """About three figures, without an exponent; whole numbers as such; `-` for what is none."""
    if not math.isfinite(value):
        return "-"
    if value == int(value):
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    return f"{value:.{digits}f}"


MEASURES: tuple[tuple[str, Callable[[Run], float]], ...] = (
    ("accepted/s", lambda run: run.accepted_per_s),
    ("delivered/s", lambda run: run.delivered_per_s),
    ("CPU ms/msg", lambda run: run.cpu_ms),
    ("PSS MB", lambda run: run.pss_bytes / 1e6),
    ("processes", lambda run: run.processes),
    ("others %", lambda run: run.others_share * 100),
)
# Which way a ratio is told so that more is better for the first server.
RATIOS: tuple[tuple[str, Callable[[Run, Run], float]], ...] = (
    ("accepted", lambda one, two: one.accepted_per_s / two.accepted_per_s),
    ("delivered", lambda one, two: one.delivered_per_s / two.delivered_per_s),
    ("CPU a message (inverse)", lambda one, two: two.cpu_ms / one.cpu_ms),
)


def by_workload(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    """Runs by workload, then by server, both in the order of their first run."""
    found: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        found.setdefault(run.workload, {}).setdefault(run.server, []).append(run)
    return found


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def figures(runs: Sequence[Run], barriers: dict[tuple[str, str], float]) -> str:
    """One row for each workload and server: medians with least and greatest. `barriers`: by workload and server."""
    rows = []
    for workload, servers in by_workload(runs).items():
        for server, own in servers.items():
            cells = [Spread.of([measure(run) for run in own]).text() for _, measure in MEASURES]
            counted = barriers.get((workload, server))
            rows.append([f"{workload} {server}", str(own[0].messages), *cells, "-" if counted is None else number(counted)])
    return table(["", "messages", *(name for name, _ in MEASURES), "barriers/msg"], rows)


def ratios(runs: Sequence[Run], first: str, second: str) -> str:
    """The ratios of the pairs of runs made one after the other; empty where there are none."""
    rows = []
    for workload, servers in by_workload(runs).items():
        pairs = list(zip(servers.get(first, ()), servers.get(second, ()), strict=False))
        if pairs:
            rows.append([workload, *(Spread.of([ratio(one, two) for one, two in pairs]).text() for _, ratio in RATIOS)])
    return table([f"{first} / {second}", *(name for name, _ in RATIOS)], rows) if rows else ""
