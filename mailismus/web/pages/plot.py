"""Plots: values over time as paths of SVG (pure).

*Rules*: a plot holds numbers and our own words alone. Where samples are missing the line is broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo

import attrs

WIDTH, HEIGHT = 400, 150
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 22
POINT_W = 3.0
"""Of a point alone."""
GAP_S = 200.0
"""A longer time between two samples is a gap."""
_TICKS_H = 4

Point = tuple[float, float | None]
"""UTC seconds and a value; None: unknown."""


@attrs.frozen
class Curve:
    """One line of a plot. `kind`: its colour, a class of the style sheet; `latest`: its last value as text."""

    name: str
    kind: str
    path: str
    latest: str


@attrs.frozen
class Tick:
    """A mark on an axis: its place in the picture, and its text."""

    at: float
    text: str


@attrs.frozen
class Plot:
    """A plot. `levels`: marks at the left; `times`: marks below."""

    title: str
    lines: Sequence[Curve]
    levels: Sequence[Tick]
    times: Sequence[Tick]
    is_empty: bool
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def plot(
    title: str,
    lines: Sequence[tuple[str, str, Sequence[Point]]],
    begin: float,
    end: float,
    show: Callable[[float | None], str],
    zone: tzinfo | None = None,
    most: float | None = None,
) -> Plot:
    """A plot from `begin` to `end` of lines, each with name, kind and points. `show`: a value as text; `most`: the highest
    level, if it is fixed."""
    values = [value for _, _, points in lines for _, value in points if value is not None]
    highest = most or nice_above(max(values, default=0.0))

    def x(at: float) -> float:
        share = (at - begin) / (end - begin) if end > begin else 0.0
        return LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - min(1.0, max(0.0, value / highest)) * (HEIGHT - TOP - BOTTOM)

    drawn = [Curve(name, kind, _path(points, x, y), show(points[-1][1] if points else None)) for name, kind, points in lines]
    levels = [Tick(round(y(level), 1), _level(level, show)) for level in (0.0, highest / 2, highest)]
    times = [Tick(round(x(at), 1), text) for at, text in _marks(begin, end, zone)]
    return Plot(title, drawn, levels, times, not values)


def _level(value: float, show: Callable[[float | None], str]) -> str:
    """A level as text: a small one with all its figures."""
    return f"{value:.2g}" if 0 < value < 0.1 else show(value)


def nice_above(value: float) -> float:
    """The next number of 1, 2 or 5 with zeros that is not below; 1 for 0 and whatever is no number."""
    if not 0 < value < 1e15:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next((step * unit for step in (1, 2, 5, 10) if step * unit >= value), 10 * unit)


def _path(points: Sequence[Point], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    steps: list[str] = []
    before: float | None = None
    for at, value in points:
        if value is None or not math.isfinite(value):
            before = None
            continue
        if before is None or at - before > GAP_S:
            steps.append(f"M{max(LEFT, x(at) - POINT_W):.1f} {y(value):.1f}")  # a point alone is seen
        steps.append(f"L{x(at):.1f} {y(value):.1f}")
        before = at
    return "".join(steps)


def _marks(begin: float, end: float, zone: tzinfo | None) -> Iterator[tuple[float, str]]:
    """Times of the clock, four to seven: every quarter of an hour, or every few hours."""
    step_s = 900.0 if end - begin < 2 * 3600 else 3600.0
    at = math.ceil(begin / step_s) * step_s
    while at <= end:
        try:
            moment = datetime.fromtimestamp(at, zone)
        except (OverflowError, ValueError, OSError):
            return
        if step_s < 3600 or moment.hour % _TICKS_H == 0:
            yield at, f"{moment:%H:%M}"
        at += step_s
