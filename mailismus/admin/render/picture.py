"""The shape of a queue as a picture: a bar for each domain, its parts coloured by the age of their messages. SVG. Pure.

*Rules*: names come from clients and hosts. Only printable characters of a name reach the picture, escaped for XML, and at
most `NAME_LENGTH` of them. At most `MAX_ROWS` bars are drawn; the rest is one bar. The ground is white, also on a dark page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from mailismus.admin.model.shape import LABELS, Shape
from mailismus.observe.text import shown

MAX_ROWS = 40
NAME_LENGTH = 36
"""Characters of a name: a longer one loses its middle."""

_COLOURS = ("#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#fdd0a2", "#fdae6b", "#f16913", "#d94801", "#8c2d04")
"""One for each of `LABELS`: blue up to two hours, orange beyond."""
_INK, _PALE, _GROUND = "#1b1f24", "#57606a", "#ffffff"
_FONT = 'font-family="system-ui, -apple-system, sans-serif"'
_WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _BAR = 960, 300, 90, 92, 24, 16
_LEAST = 1.0
"""Width of the narrowest part: a single entry beside a million is still seen."""


def shape_svg(shape: Shape, title: str) -> str:
    """Return the picture, with its last line end. `title`: the words above it."""
    drawn = shape.first(MAX_ROWS)
    rows = [(_shortened(shown(row.name)), row.counts) for row in drawn.rows]
    if any(drawn.others):
        rows.append(("(all others)", drawn.others))
    height = _TOP + _ROW * max(len(rows), 1) + 24
    longest = max((sum(counts) for _, counts in rows), default=0)
    total = sum(shape.totals)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{_GROUND}"/>',
        _text(24, 34, title, size=18, weight=600),
        _text(24, 56, f"{total:,} {'entry' if total == 1 else 'entries'} by {_MEANING[shape.by.value]}", colour=_PALE),
        *_legend(),
    ]
    for number, (name, counts) in enumerate(rows):
        lines += _row(_TOP + _ROW * number, name, counts, longest)
    if not rows:
        lines.append(_text(_LEFT, _TOP + _BAR, "No entry matches.", colour=_PALE))
    return "\n".join([*lines, "</svg>"]) + "\n"


_MEANING = {"domain": "recipient's domain", "host": "the host that replied last", "sender": "sender's domain"}


def _legend() -> Iterator[str]:
    """The colours, with the ages that they mean."""
    step = (_WIDTH - _LEFT - 24) / len(LABELS)
    for number, (label, colour) in enumerate(zip(LABELS, _COLOURS, strict=True)):
        x = _LEFT + step * number
        yield f'<rect x="{x:.1f}" y="64" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 16, 74, label, size=12, colour=_PALE)


def _row(y: float, name: str, counts: Sequence[int], longest: int) -> Iterator[str]:
    yield _text(_LEFT - 12, y + 13, name, anchor="end")
    x = float(_LEFT)
    scale = (_WIDTH - _LEFT - _RIGHT - _LEAST * len(LABELS)) / longest
    for label, count, colour in zip(LABELS, counts, _COLOURS, strict=True):
        if not count:
            continue
        width = _LEAST + count * scale
        tip = f"<title>{escape(name)}, {label}: {count:,}</title>"
        yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}">{tip}</rect>'
        x += width
    yield _text(x + 8, y + 13, f"{sum(counts):,}", size=12, colour=_PALE)


def _shortened(name: str) -> str:
    if len(name) <= NAME_LENGTH:
        return name
    half = (NAME_LENGTH - 1) // 2
    return f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[-half:]}"


def _text(
    x: float, y: float, words: str, *, size: int = 13, anchor: str = "start", colour: str = _INK, weight: int = 400
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}" {_FONT}>{escape(words)}</text>'
