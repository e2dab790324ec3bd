"""Layout: the whole screen as lines of styled text (pure).

*Rules*: as many lines as the screen has, each exactly as wide. The figures at the top, a table or what is opened in the
middle, the selected row in full and the keys at the bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import attrs

from mailismus.observe.amounts import moment
from mailismus.observe.figures import Picture
from mailismus.observe.grades import PLAIN
from mailismus.observe.history import Rates
from mailismus.top.cells import Line, Span, clean, folded_into, left, line_of, width_of
from mailismus.top.detail import detail_of
from mailismus.top.head import head_of
from mailismus.top.plot import BLOCKS
from mailismus.top.state import Pane, ViewState
from mailismus.top.table import DIM, HEAD, Table, table_of
from mailismus.top.wording import HELP_LINES

LEAST_WIDTH, LEAST_HEIGHT = 40, 12
NOTE_LINES = 2
_EMPTY = {
    Pane.HOPS: "No next hop has had mail since the server started.",
    Pane.FAILURES: "No attempt has failed since the server started.",
    Pane.HOLDS: "Nothing holds mail back.",
}
_KEYS = "q leave  / filter  s order  enter open  tab next table  p pause  h help"
_KEYS_OPENED = "esc back  up down scroll  tab next table  q leave"
_KEYS_TYPING = "enter: keep the filter  esc: no filter"


@attrs.frozen
class Frame:
    """What is to be drawn. `picture` None: the server has told nothing yet."""

    picture: Picture | None
    rates: Sequence[Rates] = ()
    trouble: str = ""
    """Why the picture is old, in a sentence; empty: it is not."""
    entries: Sequence[str] = ()
    """What the server told of the entries of what is opened."""
    blocks: str = BLOCKS
    zone: tzinfo | None = None


def draw(frame: Frame, state: ViewState, width: int, height: int) -> tuple[list[Line], ViewState]:
    """The screen, and the state with the rows that are on it."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        text = f"{width}x{height} is too small: {LEAST_WIDTH}x{LEAST_HEIGHT} or more"
        return _filled([[Span(PLAIN, text)]], width, height), state
    if frame.picture is None:
        return _filled([[], [Span(PLAIN, f"  {clean(frame.trouble or 'Asking the server ...')}")]], width, height), state
    notice = "Paused: p goes on" if state.is_paused else ""
    head = head_of(frame.picture, frame.rates, width, frame.blocks, frame.zone, notice)
    if frame.trouble:
        as_of = f"  as of {moment(frame.picture.now, frame.zone)} "
        text = left(f" {clean(frame.trouble)}", width - width_of(as_of))
        head[0] = line_of([Span("alarm", text + as_of)], width, "alarm")
    room = height - len(head) - 2
    if state.is_help:
        middle, state = _scrolled([line_of([Span(PLAIN, text)], width) for text in HELP_LINES], state, room, width)
    elif state.opened:
        lines = detail_of(frame.picture, state, frame.entries, width, frame.zone)
        middle, state = _scrolled(lines, state, room, width)
    else:
        table = table_of(frame.picture, state, width, frame.zone)
        middle, state = _table(table, state, room, width)
    return [*head, _tabs(frame.picture, state, width), *middle, _keys(state, width)], state


def _filled(lines: Sequence[Sequence[Span]], width: int, height: int) -> list[Line]:
    found = [line_of(spans, width) for spans in lines[:height]]
    return found + [line_of((), width)] * (height - len(found))


def _tabs(picture: Picture, state: ViewState, width: int) -> Line:
    counts = {Pane.HOPS: len(picture.rows), Pane.FAILURES: len(picture.failures), Pane.HOLDS: len(picture.holds)}
    spans = []
    for pane, count in counts.items():
        spans.append(Span("tab" if pane is state.pane else DIM, f" {pane.value.capitalize()} {count} "))
        spans.append(Span(PLAIN, " "))
    if state.pane is Pane.HOPS and not state.opened:
        spans.append(Span(PLAIN, f" by {state.sort.value}"))
    if state.filter or state.is_typing:
        spans.append(Span("value", f"  /{clean(state.filter)}{'_' if state.is_typing else ''}"))
    return line_of(spans, width)


def _table(table: Table, state: ViewState, room: int, width: int) -> tuple[list[Line], ViewState]:
    shown = room - 1 - NOTE_LINES
    state = state.drawn([row.key for row in table.rows], shown)
    if not table.rows:
        text = f"Nothing matches /{clean(state.filter)}" if state.filter else _EMPTY[state.pane]
        return _filled([[], [Span(DIM, f"  {text}")]], width, room), state
    first = max(0, min(state.position - shown // 2, len(table.rows) - shown))
    lines = [line_of([Span(HEAD, table.heading)], width, HEAD)]
    for row in table.rows[first : first + shown]:
        if row.key == state.selected:
            text = "".join(span.text for span in row.spans)
            lines.append(line_of([Span("selected", text)], width, "selected"))
        else:
            lines.append(line_of(row.spans, width))
    lines += [line_of((), width)] * (1 + shown - len(lines))
    note = folded_into(table.rows[state.position].note, width, NOTE_LINES)
    lines += [line_of([Span("note", text)], width, "note") for text in note]
    return lines + [line_of((), width)] * (room - len(lines)), state


def _scrolled(lines: Sequence[Line], state: ViewState, room: int, width: int) -> tuple[list[Line], ViewState]:
    state = attrs.evolve(state, scroll=max(0, min(state.scroll, len(lines) - room)), page=room)
    shown = list(lines[state.scroll : state.scroll + room])
    return shown + [line_of((), width)] * (room - len(shown)), state


def _keys(state: ViewState, width: int) -> Line:
    text = _KEYS_TYPING if state.is_typing else _KEYS_OPENED if state.opened else _KEYS
    text = "any other key: back  q leave" if state.is_help else text
    return line_of([Span("keys", left(f" {text}", width))], width, "keys")
