"""What keys change."""

from __future__ import annotations

import attrs
import pytest

from mailismus.observe.hop_order import HopOrder
from mailismus.top.layout import Frame, draw
from mailismus.top.state import Pane, ViewState, press
from tests.top.samples import busy, picture_of, text_of

FRAME = Frame(picture_of(busy(5), busy(1)))


def pressed(*keys: str, state: ViewState | None = None, height: int = 24) -> ViewState:
    """The state behind these keys, the screen drawn behind each."""
    state = state or ViewState()
    for key in ("", *keys):
        state = press(state, key)
        _, state = draw(FRAME, state, 80, height)
    return state


@pytest.mark.parametrize("key", ["q", "ctrl c"])
def test_a_key_leaves(key: str) -> None:
    assert pressed(key).is_over
    assert pressed("h", key).is_over


def test_arrows_select_rows_and_stop_at_the_ends() -> None:
    assert pressed().selected == "slow.test"
    assert pressed("down").selected == "well.test"
    assert pressed("down", "up", "up").selected == "slow.test"
    assert pressed("page down").selected == "local users"
    assert pressed("end", "home").selected == "slow.test"


def test_the_selected_row_stays_selected_in_another_order() -> None:
    state = pressed("down", "s")
    assert state.sort is HopOrder.WAITS
    assert state.selected == "well.test"


def test_a_selected_row_that_has_gone_leaves_its_place_to_another() -> None:
    state = pressed("end")
    shorter = attrs.evolve(picture_of(busy()), rows=picture_of(busy()).rows[:2])
    _, state = draw(Frame(shorter), state, 80, 24)
    assert state.selected == state.rows[-1]


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        (HopOrder.HELD, "slow.test"),
        (HopOrder.WAITS, "dead.test"),
        (HopOrder.SENT, "well.test"),
        (HopOrder.FAILING, "dead.test"),
        (HopOrder.NAME, "dead.test"),
    ],
)
def test_each_order_has_its_most_first(sort: HopOrder, first: str) -> None:
    assert pressed(state=ViewState(sort=sort)).rows[0] == first


def test_orders_come_one_after_the_other_and_back() -> None:
    assert pressed("s", "s", "S").sort is HopOrder.WAITS
    assert pressed(*["s"] * len(HopOrder)).sort is HopOrder.HELD


def test_a_filter_is_typed_kept_and_removed() -> None:
    typed = pressed("/", *"grex", "backspace", "y")
    assert typed.filter == "grey"
    assert list(typed.rows) == ["greylisting.test"]
    assert not pressed("enter", state=typed).is_typing
    assert pressed("esc", state=typed).filter == ""
    assert pressed("enter", "esc", state=typed).filter == ""
    assert pressed("q", state=typed).filter == "greyq"


def test_a_row_is_opened_scrolled_and_closed() -> None:
    state = pressed("down", "enter")
    assert state.opened == "well.test"
    assert pressed("end", state=state, height=12).scroll > 0
    assert pressed("end", "home", state=state, height=12).scroll == 0
    assert pressed("esc", state=state).opened == ""
    assert pressed("tab", state=state).opened == ""


def test_tables_come_one_after_the_other() -> None:
    assert pressed("tab").pane is Pane.FAILURES
    assert pressed("tab", "tab").pane is Pane.HOLDS
    assert pressed("shift tab").pane is Pane.HOLDS
    assert pressed("tab", "tab", "tab").pane is Pane.HOPS


def test_help_goes_with_any_key() -> None:
    assert pressed("?").is_help
    assert not pressed("?", "x").is_help


def test_a_pause_is_told() -> None:
    lines, _ = draw(FRAME, pressed("p"), 80, 24)
    assert "Paused" in text_of(lines)
    assert not pressed("p", "p").is_paused
