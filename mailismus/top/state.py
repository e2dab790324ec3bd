"""State: what the screen shows of a picture, and what a key changes (pure).

*Rules*: a state is a value; `press` returns another one. A row is remembered by its name, so that it stays selected while
rows come and go.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

import attrs

from mailismus.observe.hop_order import HopOrder

MAX_FILTER = 60


class Pane(enum.Enum):
    """The table that is shown."""

    HOPS = "next hops"
    FAILURES = "last failures"
    HOLDS = "held back"


PANES, SORTS = tuple(Pane), tuple(HopOrder)


@attrs.frozen
class ViewState:
    """What is shown. `rows`: keys of the rows of the table, in their order, as they were drawn last."""

    pane: Pane = Pane.HOPS
    sort: HopOrder = HopOrder.HELD
    filter: str = ""
    is_typing: bool = False
    """Whether keys go into the filter."""
    selected: str = ""
    """The key of the selected row; empty: the first one."""
    position: int = 0
    """Its place when it was there last."""
    opened: str = ""
    """The key of the row that is shown in full; empty: none."""
    scroll: int = 0
    """Lines of the opened row that are above the screen."""
    is_paused: bool = False
    is_help: bool = False
    is_over: bool = False
    rows: Sequence[str] = ()
    page: int = 10
    """Rows of the table that fit on the screen."""

    def drawn(self, rows: Sequence[str], page: int) -> ViewState:
        """The same with the rows that are drawn now: the selected one is among them, if there is one."""
        if self.selected in rows:
            return attrs.evolve(self, rows=rows, page=page, position=rows.index(self.selected))
        position = max(0, min(self.position, len(rows) - 1))
        return attrs.evolve(self, rows=rows, page=page, position=position, selected=rows[position] if rows else "")

    def move(self, by: int) -> ViewState:
        """Select another row, or scroll what is opened."""
        if self.opened or self.is_help:
            return attrs.evolve(self, scroll=max(0, self.scroll + by))
        if not self.rows:
            return self
        position = max(0, min(self.position + by, len(self.rows) - 1))
        return attrs.evolve(self, position=position, selected=self.rows[position])


def press(state: ViewState, key: str) -> ViewState:
    """The state behind a key, by urwid's name for it. A key without a meaning changes nothing."""
    if state.is_typing:
        return _type(state, key)
    if state.is_help and key not in _EVERYWHERE:
        return attrs.evolve(state, is_help=False, scroll=0)
    action = _ACTIONS.get(key)
    return state if action is None else action(state)


def _type(state: ViewState, key: str) -> ViewState:
    if key == "enter":
        return attrs.evolve(state, is_typing=False)
    if key == "esc":
        return attrs.evolve(state, is_typing=False, filter="")
    if key in ("backspace", "ctrl h"):
        return attrs.evolve(state, filter=state.filter[:-1])
    if key == "ctrl u":
        return attrs.evolve(state, filter="")
    if len(key) == 1 and key.isprintable() and len(state.filter) < MAX_FILTER:
        return attrs.evolve(state, filter=state.filter + key)
    return state


def _next_of(values: tuple[Pane, ...] | tuple[HopOrder, ...], value: Pane | HopOrder, by: int) -> int:
    return (values.index(value) + by) % len(values)


def _turn(by: int) -> Callable[[ViewState], ViewState]:
    def act(state: ViewState) -> ViewState:
        pane = PANES[_next_of(PANES, state.pane, by)]
        return attrs.evolve(state, pane=pane, opened="", scroll=0, selected="", position=0)

    return act


def _order(by: int) -> Callable[[ViewState], ViewState]:
    return lambda state: attrs.evolve(state, sort=SORTS[_next_of(SORTS, state.sort, by)])


def _move(by: Callable[[ViewState], int]) -> Callable[[ViewState], ViewState]:
    return lambda state: state.move(by(state))


def _open(state: ViewState) -> ViewState:
    return attrs.evolve(state, opened=state.selected, scroll=0) if state.selected else state


def _back(state: ViewState) -> ViewState:
    if state.opened:
        return attrs.evolve(state, opened="", scroll=0)
    return attrs.evolve(state, filter="")


_ACTIONS: Mapping[str, Callable[[ViewState], ViewState]] = {
    **dict.fromkeys(("q", "Q", "ctrl c", "ctrl d"), lambda state: attrs.evolve(state, is_over=True)),
    **dict.fromkeys(("h", "?", "f1"), lambda state: attrs.evolve(state, is_help=True, scroll=0)),
    **dict.fromkeys(("up", "k"), _move(lambda state: -1)),
    **dict.fromkeys(("down", "j"), _move(lambda state: 1)),
    "page up": _move(lambda state: -state.page),
    "page down": _move(lambda state: state.page),
    **dict.fromkeys(("home", "g"), _move(lambda state: -len(state.rows) - state.scroll)),
    **dict.fromkeys(("end", "G"), _move(lambda state: len(state.rows) + state.page)),
    **dict.fromkeys(("tab", "right"), _turn(1)),
    **dict.fromkeys(("shift tab", "left"), _turn(-1)),
    "s": _order(1),
    "S": _order(-1),
    "/": lambda state: attrs.evolve(state, is_typing=True, opened="", scroll=0),
    "enter": _open,
    **dict.fromkeys(("esc", "backspace"), _back),
    "p": lambda state: attrs.evolve(state, is_paused=not state.is_paused),
}
_EVERYWHERE = frozenset({"q", "Q", "ctrl c", "ctrl d", "up", "down", "k", "j", "page up", "page down"})
"""Keys that the help leaves as they are."""
