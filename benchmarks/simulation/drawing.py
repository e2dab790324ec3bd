"""The drawings: distributions and bars as SVG (pure). Their ground is white, also on a dark page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 56, 96
INK, PALE, GRID, GROUND = "#1b1f24", "#57606a", "#d8dee4", "#ffffff"
_FONT = "font-family='system-ui, -apple-system, sans-serif'"


class Curve(NamedTuple):
    """A distribution: ascending values at equal steps of the share."""

    name: str
    colour: str
    is_dashed: bool
    values: Sequence[float]


class Panel(NamedTuple):
    """A few bars with one scale. `goal`: a line across; None: there is none."""

    title: str
    bars: Sequence[tuple[str, str, float]]
    """Name, colour and value of each."""
    goal: float | None = None


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 13,
    anchor: str = "middle",
    colour: str = INK,
    bold: bool = False,
    is_ringed: bool = False,
) -> str:
    """`is_ringed`: lines end before it."""
    weight = " font-weight='600'" if bold else ""
    weight += " stroke='white' stroke-width='5' paint-order='stroke'" if is_ringed else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{colour}' {_FONT}{weight}>"
        f"{escape(words)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1.0, dash: str = "") -> str:
    dashed = f" stroke-dasharray='{dash}'" if dash else ""
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' stroke-width='{width}'{dashed}/>"
    )


def _whole(parts: Sequence[str], height: int, title: str) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}'>"
        f"<title>{escape(title)}</title><rect width='{WIDTH}' height='{height}' fill='{GROUND}'/>"
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _seconds(value: float) -> str:
    if value >= 60 and value % 60 == 0:
        return f"{value / 60:.0f} min"
    return f"{value:g} s" if value >= 1 else f"{value * 1000:g} ms"


_TICKS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 7200.0)


def draw_curves(title: str, subtitle: str, curves: Sequence[Curve]) -> str:
    """Draw distributions over a logarithmic axis of time: the share of mail that was delivered within it."""
    values = [value for curve in curves for value in curve.values if value > 0]
    low, high = min(values, default=0.1), max(values, default=1.0)
    ticks = [tick for tick in _TICKS if low / 2 <= tick <= high * 2]
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    span = math.log(high / low) or 1.0
    legend_rows = -(-len(curves) // 2)
    height = HEIGHT + 20 * legend_rows - 40
    bottom = height - 56 - 20 * legend_rows

    def x_of(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(max(value, low) / low) / span

    def y_of(share: float) -> float:
        return bottom - (bottom - TOP) * share

    parts = [
        _text(LEFT, 24, title, size=16, anchor="start", bold=True),
        _text(LEFT, 42, subtitle, anchor="start", colour=PALE),
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 0.95, 1.0):
        parts.append(_line(LEFT, y_of(share), WIDTH - RIGHT, y_of(share), GRID))
        shift = 9 if share == 0.95 else 0
        parts.append(_text(LEFT - 8, y_of(share) + 4 + shift, f"{share:.0%}", size=12, anchor="end", colour=PALE))
    for tick in ticks:
        parts.append(_line(x_of(tick), TOP, x_of(tick), bottom, GRID))
        parts.append(_text(x_of(tick), bottom + 18, _seconds(tick), size=12, colour=PALE))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, "delay until delivery", colour=PALE))
    for curve in curves:
        count = len(curve.values)
        points = " ".join(f"{x_of(value):.1f},{y_of((n + 1) / count):.1f}" for n, value in enumerate(curve.values))
        dash = " stroke-dasharray='6 4'" if curve.is_dashed else ""
        parts.append(f"<polyline points='{points}' fill='none' stroke='{curve.colour}' stroke-width='2.2'{dash}/>")
    for number, curve in enumerate(curves):
        x = LEFT + (number % 2) * (WIDTH - LEFT - RIGHT) / 2
        y = bottom + 64 + 20 * (number // 2)
        parts.append(_line(x, y - 4, x + 34, y - 4, curve.colour, width=2.2, dash="6 4" if curve.is_dashed else ""))
        parts.append(_text(x + 42, y, curve.name, anchor="start"))
    return _whole(parts, height, title)


def draw_panels(title: str, panels: Sequence[Panel]) -> str:
    """Draw panels of bars side by side."""
    height, top, bottom = 300, 84, 240
    parts = [_text(24, 28, title, size=16, anchor="start", bold=True)]
    each = (WIDTH - 24) / len(panels)
    for number, panel in enumerate(panels):
        left = 24 + number * each
        width = each - 24
        most = max([value for _, _, value in panel.bars] + [panel.goal or 0.0]) or 1.0
        parts.append(_text(left, 58, panel.title, anchor="start"))
        parts.append(_line(left, bottom, left + width, bottom, PALE))
        step = width / len(panel.bars)
        figures = []
        for position, (name, colour, value) in enumerate(panel.bars):
            size = (bottom - top) * value / most
            x = left + position * step + step * 0.18
            parts.append(
                f"<rect x='{x:.1f}' y='{bottom - size:.1f}' width='{step * 0.64:.1f}' height='{max(size, 0.5):.1f}' "
                f"fill='{colour}'/>"
            )
            middle = x + step * 0.32
            figures.append(_text(middle, bottom - size - 6, _number(value), size=12, is_ringed=True))
            for row, word in enumerate(name.split("\n")):
                parts.append(_text(middle, bottom + 18 + 15 * row, word, size=12, colour=PALE))
        if panel.goal is not None:
            y = bottom - (bottom - top) * panel.goal / most
            parts.append(_line(left, y, left + width, y, INK, dash="3 3"))
        parts.extend(figures)  # above the line
    return _whole(parts, height, title)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
