"""The queues side by side: tables and drawings from what `choose` has kept (pure)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.results.kept import Figures, Kept, cells
from benchmarks.results.report import table
from benchmarks.simulation.drawing import Panel, draw_panels


class Key(NamedTuple):
    """What a figure is of."""

    file_system: str
    part: str
    variant: str


_LOAD = ("accepted/s", "delivered/s", "CPU ms/msg", "barriers/msg", "device KiB/msg", "PSS MB", "others %")
PARTS: dict[str, tuple[str, ...]] = {
    **{f"W{number}/{sessions}": _LOAD for sessions in (50, 1) for number in (1, 2, 3, 4)},
    "deferrals": ("barriers/msg", "device KiB/msg", "disk MiB", "contents MiB"),
    "drain": ("filled/s", "drained/s", "new mail p95 s"),
    "start": (*("imports s", "first 220 s", "fresh message s", "due entry s", "PSS MB", "count s", "share beside a count"),),
}
"""The parts, with their figures."""

_LOADS = "load"
MOST_OTHERS = 20.0
"""Percent of the machine that others may use while a rate is measured."""
_RATES = ("accepted/s", "delivered/s", "CPU ms/msg")
COLOURS = {
    "clustered": "#0b6e99",
    "clustered-links": "#7fb3c8",
    "log": "#b8560f",
    "log-spool": "#e3a877",
    "chunk": "#4f7a28",
}


def fair(runs: Sequence[Figures], figure: str) -> list[Figures]:
    """The runs that count for a figure: for a rate those in which others let the machine alone."""
    return [run for run in runs if figure not in _RATES or run.get("others %", 0.0) <= MOST_OTHERS]


def markdown(kept: Kept) -> str:
    """A table for new mail and one for each other part."""
    groups: dict[str, list[Key]] = {}
    for words in kept.measured:
        key = Key(*words)
        groups.setdefault(_LOADS if "/" in key.part else key.part, []).append(key)
    parts = []
    for name, keys in groups.items():
        figures = _LOAD if name == _LOADS else PARTS[name]
        rows = []
        order = list(PARTS)
        for key in sorted(keys, key=lambda key: (order.index(key.part), key.file_system)):
            runs = kept.of(key)
            found = [cell for figure in figures for cell in cells(fair(runs, figure), [figure])]
            rows.append([key.part, key.file_system, key.variant, str(len(runs)), *found])
        parts.append(table(["", "file system", "queue", "runs", *figures], rows))
    return "\n\n".join(parts)


def draw(kept: Kept, file_system: str = "ext4") -> dict[str, str]:
    """Drawings by the name of their file, of what was measured of two queues at least."""
    wanted = {
        "new-mail.svg": (
            "New mail: messages delivered a second",
            [
                ("W1, 50 sessions", "W1/50", "delivered/s"),
                ("W2, 50 sessions", "W2/50", "delivered/s"),
                ("W3, 50 sessions", "W3/50", "delivered/s"),
                ("W4, 50 sessions", "W4/50", "delivered/s"),
            ],
        ),
        "disk.svg": (
            "What a message costs the disk",
            [
                ("barriers, W1", "W1/50", "barriers/msg"),
                ("KiB written, W1", "W1/50", "device KiB/msg"),
                ("barriers, 4 deferrals", "deferrals", "barriers/msg"),
                ("KiB, 4 deferrals", "deferrals", "device KiB/msg"),
            ],
        ),
        "backlog.svg": (
            "A backlog, and a start over deferred mail",
            [
                ("backlog drained, 1/s", "drain", "drained/s"),
                ("first 220, s", "start", "first 220 s"),
                ("due entry delivered, s", "start", "due entry s"),
                ("memory, MB", "start", "PSS MB"),
            ],
        ),
    }
    found = {}
    for name, (title, panels) in wanted.items():
        drawn = [_panel(kept, file_system, *one) for one in panels]
        whole = [panel for panel in drawn if panel is not None]
        if whole:
            found[name] = draw_panels(f"{title} ({file_system})", whole)
    return found


def _panel(kept: Kept, file_system: str, title: str, part: str, figure: str) -> Panel | None:
    bars: list[tuple[str, str, float]] = []
    for variant, colour in COLOURS.items():
        runs = fair(kept.of(Key(file_system, part, variant)), figure)
        if runs:
            bars.append((_short(variant), colour, statistics.median([run[figure] for run in runs])))
    return Panel(title, bars) if len(bars) > 1 else None


def _short(variant: str) -> str:
    return "\n".join(_words(variant))


def _words(variant: str) -> Sequence[str]:
    return variant.replace("clustered", "clust.").split("-")
