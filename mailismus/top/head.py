"""Head: the lines above the table: what comes in and goes out, the queue, its disk (pure)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import tzinfo

from mailismus.observe.amounts import amount, milliseconds, moment, noun, size
from mailismus.observe.figures import Barriers, FreeSpace, Picture, told_spaces
from mailismus.observe.grades import BAD, GOOD, PLAIN, WARN, grade_of_barriers, grade_of_space
from mailismus.observe.history import Rates
from mailismus.top.cells import Line, Span, clean, cut, line_of, width_of
from mailismus.top.plot import plot
from mailismus.top.table import DIM, HEAD

LABEL_CELLS = 7
LEAST_NAME = 11
"""Cells of the title: ` Mailismus~`."""
LEAST_PLOT = 8
MOST_PLOT = 60
SCALE_CELLS = 14
"""Of what the highest block of a plot means."""
GAP = 2
"""Cells between two parts of a line, at least."""


def head_of(
    picture: Picture, rates: Sequence[Rates], width: int, blocks: str, zone: tzinfo | None, notice: str = ""
) -> list[Line]:
    """The lines. `rates`: of the last minutes; `blocks`: what a plot is made of; `notice`: what is told before all."""
    traffic = picture.traffic
    failing = _style(traffic.failed, BAD), _style(traffic.deferred, WARN)
    come = [
        *_item(amount(traffic.messages), "messages/s"),
        *_item(amount(traffic.recipients), "recipients/s"),
        *_item(size(traffic.bytes_in), "/s", gap=""),
        *_item(amount(picture.clients), noun(picture.clients, "client")),
        *(_item(amount(traffic.refused), "refused/s", WARN) if traffic.refused else ()),
    ]
    gone = [
        *_item(amount(traffic.delivered), "sent/s", GOOD if traffic.delivered else PLAIN),
        *_item(amount(traffic.deferred), "deferred/s", failing[1]),
        *_item(amount(traffic.failed), "failed/s", failing[0]),
        *_item(size(traffic.bytes_out), "/s", gap=""),
        *_item(amount(picture.connections), "conn"),
    ]
    return [
        _title(picture, width, zone, notice),
        _labelled("In", come, [one.came for one in rates], width, blocks),
        _labelled("Out", gone, [one.went for one in rates], width, blocks),
        _labelled("Queue", _queue(picture), (), width, blocks),
        _labelled("Disk", [*_barriers(picture.barriers), *_spaces(picture.spaces)], (), width, blocks),
    ]


def _title(picture: Picture, width: int, zone: tzinfo | None, notice: str) -> Line:
    """What there is no room for goes in this order: the share of the processor, the end of the name, that of the alarm."""
    name = f" Mailismus {clean(picture.version)}  {clean(picture.name)}"
    end = f"{moment(picture.now, zone)} "
    alarm = f"  {notice}" if notice else ""
    alarm += f"  refuses mail: {clean(', '.join(picture.refusing))}" if picture.refusing else ""
    room = width - width_of(alarm) - width_of(end) - GAP
    cpu = "" if picture.cpu is None else f"processor {picture.cpu:.0%}  "
    end = f"{cpu}{end}" if width_of(name) + width_of(cpu) <= room else end
    name = cut(name, max(LEAST_NAME, room))
    gap = " " * max(GAP, width - width_of(name) - width_of(alarm) - width_of(end))
    return line_of((Span("title", name), Span("alarm", alarm), Span("title", gap + end)), width, "title")


def _labelled(label: str, spans: Sequence[Span], values: Sequence[float], width: int, blocks: str) -> Line:
    used = LABEL_CELLS + sum(width_of(span.text) for span in spans)
    line = [Span(HEAD, label.ljust(LABEL_CELLS)), *spans]
    free = width - used - 1
    scale_cells = SCALE_CELLS if free - SCALE_CELLS >= 2 * LEAST_PLOT else 0
    room = min(free - scale_cells, MOST_PLOT)
    if values and room >= LEAST_PLOT:
        scale = f"peak {amount(max(values[-room:]))}/s ".rjust(scale_cells) if scale_cells else ""
        line += [Span(PLAIN, " " * (width - used - room - scale_cells)), Span(DIM, scale)]
        line.append(Span(GOOD, plot(values, room, blocks)))
    return line_of(line, width)


def _item(value: str, what: str, style: str = PLAIN, gap: str = " ") -> list[Span]:
    return [Span(style or "value", value), Span(PLAIN, f"{gap}{what}  ")]


def _style(rate: float | None, style: str) -> str:
    return style if rate else PLAIN


def _queue(picture: Picture) -> list[Span]:
    found = [span for area, count in picture.areas.items() for span in _item(amount(count), area)]
    found += _item(amount(picture.held), "in hand")
    if picture.waiting_jobs:
        found += _item(amount(picture.waiting_jobs), "want a connection", WARN)
    if picture.troubled_hosts:
        found += _item(amount(picture.troubled_hosts), noun(picture.troubled_hosts, "dead host"), WARN)
    if picture.stuck:
        found += _item(amount(picture.stuck), noun(picture.stuck, "stuck maildir"), BAD)
    return found


def _barriers(barriers: Barriers | None) -> list[Span]:
    if barriers is None:
        return [Span(DIM, "no barriers  ")]
    found = _item(amount(barriers.batches), "barriers/s")
    if barriers.mean_s is not None and barriers.slow_s is not None:
        bound = "unknown" if math.isinf(barriers.slow_s) else f"< {milliseconds(barriers.slow_s)}"
        found += _item(milliseconds(barriers.mean_s), f"each, p95 {bound}", grade_of_barriers(barriers.mean_s))
    if barriers.failures:
        found += _item(amount(barriers.failures), "failed", BAD)
    return found


def _spaces(spaces: Sequence[FreeSpace]) -> list[Span]:
    found: list[Span] = []
    for space, of in zip(spaces, told_spaces(spaces), strict=True):
        found += _item(f"{space.share:.0%}", f"of {size(space.size_bytes)} free{clean(of)}", grade_of_space(space.share))
    return found
