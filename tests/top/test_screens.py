"""The whole screen: its snapshots, its size, and texts that mean harm."""

from __future__ import annotations

import unicodedata
from datetime import UTC

import pytest

from mailismus.top.layout import LEAST_HEIGHT, LEAST_WIDTH, Frame, draw
from mailismus.top.state import Pane, ViewState
from tests.top.samples import HOSTILE, busy, hostile, picture_of, text_of, widths_of
from tests.top.snapshots import SCENES, SCREENS, SIZES

STATES = [ViewState(pane=pane, opened=opened) for pane in Pane for opened in ("", "dead.test", "no such row")]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCENES)
def test_a_screen_is_as_its_snapshot(name: str, size: tuple[int, int]) -> None:
    expected = (SCREENS / f"{name}-{size[0]}x{size[1]}.txt").read_text("utf-8")
    assert SCENES[name].text(*size) + "\n" == expected


@pytest.mark.parametrize("width", [LEAST_WIDTH, 41, 79, 80, 133, 200, 400])
@pytest.mark.parametrize("height", [LEAST_HEIGHT, 13, 24, 60])
def test_each_screen_has_exactly_its_size(width: int, height: int) -> None:
    for overview in (busy(2), hostile(2)):
        frame = Frame(picture_of(overview, busy(1)), zone=UTC, entries=HOSTILE, trouble=HOSTILE[0])
        for state in STATES:
            lines, _ = draw(frame, state, width, height)
            assert len(lines) == height
            assert widths_of(lines) == {width}


@pytest.mark.parametrize(("width", "height"), [(1, 1), (LEAST_WIDTH - 1, 50), (200, LEAST_HEIGHT - 1)])
def test_a_screen_that_is_too_small_says_so(width: int, height: int) -> None:
    lines, _ = draw(Frame(picture_of(busy())), ViewState(), width, height)
    assert len(lines) == height
    assert widths_of(lines) == {width}
    assert width < 10 or "too small" in text_of(lines)


def test_no_character_of_others_moves_the_cursor_or_the_direction() -> None:
    frame = Frame(picture_of(hostile(2), hostile(1)), entries=HOSTILE, trouble=HOSTILE[0])
    for state in [*STATES, *(ViewState(pane=pane, filter=text) for pane in Pane for text in HOSTILE)]:
        lines, _ = draw(frame, state, 120, 50)
        for character in text_of(lines).replace("\n", ""):
            assert character.isprintable(), repr(character)
            assert not unicodedata.combining(character), repr(character)
            assert unicodedata.bidirectional(character) not in ("R", "AL", "AN"), repr(character)


def test_an_opened_hostile_row_keeps_the_screen_whole() -> None:
    picture = picture_of(hostile(2))
    for pane in Pane:
        _, state = draw(Frame(picture), ViewState(pane=pane), 80, 24)
        for key in state.rows:
            lines, _ = draw(Frame(picture, entries=HOSTILE), ViewState(pane=pane, opened=key), 80, 24)
            assert widths_of(lines) == {80}
            assert "not among those" not in text_of(lines)
