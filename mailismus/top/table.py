"""Tables: rows of next hops, failures and holds, filtered and sorted (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import NamedTuple

from mailismus.observe.amounts import amount, lasting, lately
from mailismus.observe.figures import HopRow, Picture
from mailismus.observe.grades import PLAIN, grade_of_hold, grade_of_status
from mailismus.observe.hold_words import phrase_of, why_of
from mailismus.observe.hop_order import in_order
from mailismus.observe.overview import Failure, Holding
from mailismus.top.cells import Span, clean, left, right
from mailismus.top.state import Pane, ViewState

DIM, HEAD = "dim", "head"
"""Styles beside those of grades."""
TIME_CELLS = 11
WHY_CELLS = 19
"""Of the column with the meanings of holds."""


class TableRow(NamedTuple):
    """A row: its key, which stays the same while the screen is refreshed, and its cells."""

    key: str
    spans: tuple[Span, ...]
    note: str
    """What is told of it in full, in one sentence."""


class Table(NamedTuple):
    """A heading and rows."""

    heading: str
    rows: Sequence[TableRow]


def table_of(picture: Picture, state: ViewState, width: int, zone: tzinfo | None = None) -> Table:
    """The table of a state. `zone`: of the times shown; None: the local one."""
    if state.pane is Pane.HOPS:
        return _hops(picture.rows, state, width)
    if state.pane is Pane.FAILURES:
        return _failures(picture, state, width, zone)
    return _holds(picture.holds, state, width)


def _matches(state: ViewState, *texts: str) -> bool:
    wanted = state.filter.casefold()
    return not wanted or any(wanted in text.casefold() for text in texts)


def _hops(rows: Iterable[HopRow], state: ViewState, width: int) -> Table:
    name_cells = max(16, min(44, (width - 44) // 2))
    rates = ("SENT/s", 7), ("DEFER/s", 8), ("FAIL/s", 7)
    columns = (("IN HAND", 8), ("CONN", 5), ("WAITS", 6), *rates)
    heading = left("NEXT HOP", name_cells) + "".join(right(name, cells) for name, cells in columns) + "  WHY"
    found = []
    kept = (row for row in rows if _matches(state, row.figures.name, row.figures.hold, _why(row)))
    seen: dict[str, int] = {}
    for row in in_order(kept, state.sort):
        figures = row.figures
        name, style = clean(figures.name), grade_of_hold(figures.hold)
        values = amount(figures.entries), amount(figures.connections), lasting(figures.waits_s)
        cells = [*values, amount(row.delivered), amount(row.deferred), amount(row.failed)]
        texts = [right(text, cells_of) for text, (_, cells_of) in zip(cells, columns, strict=True)]
        why = clean(_why(row))
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name} {seen[name]}"
        spans = Span(PLAIN, left(name, name_cells)), Span(PLAIN, "".join(texts)), Span(style, "  " + why)
        found.append(TableRow(key, spans, clean(f"{figures.name}: {figures.reason or 'nothing waits, nothing has failed'}")))
    return Table(heading, found)


def _why(row: HopRow) -> str:
    return why_of(row.figures.hold, row.figures.reason)


def _failures(picture: Picture, state: ViewState, width: int, zone: tzinfo | None) -> Table:
    who_cells = max(20, min(50, (width - 36) // 2))
    heading = left("TIME", TIME_CELLS) + left("STATUS", 9) + left("RECIPIENT", who_cells) + " REPLY, HOST"
    found = []
    for one in picture.failures:
        if not _matches(state, one.next_hop, one.recipient, one.host, one.reply, one.status):
            continue
        others = f" +{one.recipients - 1}" if one.recipients > 1 else ""
        room = who_cells - len(others)
        who = left(left(clean(one.recipient), room).rstrip() + others, who_cells)
        spans = (
            Span(PLAIN, left(lately(one.at, picture.now, zone), TIME_CELLS)),
            Span(grade_of_status(one.status), left(clean(one.status), 9)),
            Span(PLAIN, who),
            Span(PLAIN, clean(f" {one.reply}, {one.host}" if one.host else f" {one.reply}")),
        )
        found.append(TableRow(failure_key(one), spans, clean(said_of(one))))
    return Table(heading, found)


def said_of(one: Failure) -> str:
    """The reply of a failure, behind the host that gave it, if one did."""
    return f"{one.host}: {one.reply}" if one.host else one.reply


def failure_key(one: Failure) -> str:
    """The key of a failure: its moment and its first recipient."""
    return f"{one.at:.3f} {clean(one.recipient)}"


def _holds(holds: Iterable[Holding], state: ViewState, width: int) -> Table:
    subject_cells = max(18, min(44, (width - WHY_CELLS - 1) // 3))
    heading = left("WHY", WHY_CELLS) + left("HOST OR LIMIT", subject_cells) + " IN FULL"
    found = []
    for one in holds:
        if _matches(state, one.hold, phrase_of(one.hold), one.subject, one.sentence):
            spans = (
                Span(grade_of_hold(one.hold), left(clean(phrase_of(one.hold)), WHY_CELLS)),
                Span(PLAIN, left(clean(one.subject), subject_cells)),
                Span(PLAIN, clean(f" {one.sentence}")),
            )
            found.append(TableRow(f"{one.hold} {clean(one.subject)}", spans, clean(one.sentence)))
    return Table(heading, found)
