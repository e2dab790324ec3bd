"""The whole screen: its snapshots, its size, and texts that mean harm."""

from __future__ import annotations

import unicodedata
from datetime import UTC

import attrs
import pytest

from mailismus.observe.history import Rates
from mailismus.observe.overview import Failure
from mailismus.top.layout import LEAST_HEIGHT, LEAST_WIDTH, Frame, draw
from mailismus.top.state import Pane, ViewState
from tests.top.samples import HOSTILE, NOW, busy, hop, hostile, idle, picture_of, text_of, widths_of
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


@pytest.mark.parametrize("width", [LEAST_WIDTH, 60, 80, 200])
def test_the_title_keeps_its_parts_apart_and_the_time_whole(width: int) -> None:
    for name in ("mx.example.net", "mx" + ".example" * 31):
        overview = attrs.evolve(busy(2), name=name)
        lines, _ = draw(Frame(picture_of(overview, busy(1)), zone=UTC), ViewState(), width, 24)
        title = text_of(lines[:1])
        assert title.startswith(" Mailismus")
        assert title.endswith("  11:06:42")
        assert ("~" in title) == (len(name) > 100 or width == LEAST_WIDTH)


@pytest.mark.parametrize("width", [LEAST_WIDTH, 80, 200])
def test_a_screen_that_is_old_says_why_and_when_it_was_true(width: int) -> None:
    lines, _ = draw(Frame(picture_of(busy(2)), trouble="none listens at " + "/run" * 20, zone=UTC), ViewState(), width, 24)
    assert text_of(lines[:1]).startswith(" none listens at /")
    assert text_of(lines[:1]).endswith("  as of 11:06:42")
    assert widths_of(lines) == {width}


def test_a_paused_screen_says_so_and_keeps_its_time() -> None:
    lines, _ = draw(Frame(picture_of(busy(2), busy(1)), zone=UTC), ViewState(is_paused=True), 80, 24)
    assert "mx.example.net  Paused: p goes on " in text_of(lines[:1])
    assert text_of(lines[:1]).endswith(" 11:06:42")


def test_a_reason_that_is_longer_than_its_two_lines_tells_that_there_is_more() -> None:
    long = attrs.evolve(busy(2), next_hops=(hop("slow.test", 3, hold="slow", reason="it is slow. " * 30),))
    lines, _ = draw(Frame(picture_of(long)), ViewState(), 80, 24)
    assert text_of(lines[-2:-1]).endswith("~")


def test_a_plot_with_room_tells_what_its_highest_block_means() -> None:
    rates = tuple(Rates(float(came), 0.01) for came in (0, 7, 3))
    wide, _ = draw(Frame(picture_of(busy(2), busy(1)), rates), ViewState(), 200, 24)
    assert text_of(wide[1:2]).endswith("▃")
    assert "peak 7/s " in text_of(wide[1:2])
    assert "peak <0.1/s " in text_of(wide[2:3])
    narrow, _ = draw(Frame(picture_of(idle(2), idle(1)), rates), ViewState(), 80, 24)
    assert widths_of(narrow) == {80}


def test_a_failure_without_a_host_names_none_and_one_of_another_day_has_its_date() -> None:
    one = Failure(NOW - 3 * 86400, "deferred", "dead.test", "ann@dead.test", 1, "", "451 4.4.1 no host answers")
    frame = Frame(picture_of(attrs.evolve(busy(2), failures=(one,))), zone=UTC)
    lines, state = draw(frame, ViewState(pane=Pane.FAILURES), 80, 24)
    (row,) = (line for line in text_of(lines).split("\n") if "ann@" in line)
    assert row.startswith("Nov 15 11h deferred ")
    assert row.endswith(" 451 4.4.1 no host answers")
    assert "\n451 4.4.1 no host answers\n" in text_of(lines)
    lines, _ = draw(frame, attrs.evolve(state, opened=state.rows[0]), 80, 24)
    assert "none was reached" in text_of(lines)
    assert "Nov 15 11:06:40" in text_of(lines)
