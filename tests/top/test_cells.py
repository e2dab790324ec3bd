"""Texts as cells of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urwid import str_util

from mailismus.top.cells import Span, clean, cut, fold, folded_into, left, line_of, right, width_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("日本", "日本"),
        ("Grüße, Привет", "Grüße, Привет"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\nb", "a\\x0d\\x0ab"),
        ("e\u0301", "e\\u0301"),
        ("\u05d0\u202e", "\\u05d0\\u202e"),
        ("\U0001f600", "\\U0001f600"),
        ("\ud800", "\\ud800"),
        ("\u200b\u3164\u1160", "\\u200b\\u3164\\u1160"),
    ],
)
def test_a_character_whose_cells_are_not_sure_is_escaped(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_wide_characters_count_twice() -> None:
    assert width_of(clean("日本x")) == 5
    assert cut("日本日本", 5) == "日本~"
    assert cut("日本日本", 4) == "日~"
    assert left("日本", 6) == "日本  "
    assert right("日", 4) == "  日"


@given(st.text(), st.integers(0, 50))
def test_a_text_of_any_characters_fits_exactly(text: str, width: int) -> None:
    shown = clean(text)
    assert width_of(left(shown, width)) == width_of(right(shown, width)) == width
    assert sum(width_of(span.text) for span in line_of([Span("", shown), Span("", shown)], width)) == width


@given(st.text(), st.integers(2, 50))
def test_a_folded_text_loses_nothing_but_spaces(text: str, width: int) -> None:
    lines = fold(clean(text), width)
    assert all(width_of(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == clean(text).replace(" ", "")


@pytest.mark.parametrize(
    ("texts", "width", "line"),
    [
        (("26%", " of it"), 9, "26% of it"),
        (("26%", " of it"), 8, "26% of ~"),
        (("26%", " of it"), 3, "26~"),
        (("26%", "   "), 3, "26%"),
        (("日", "x"), 2, "~ "),
        (("26%", " of it", "."), 5, "26% ~"),
    ],
)
def test_a_line_that_is_cut_between_two_parts_tells_that_there_is_more(
    texts: tuple[str, ...], width: int, line: str
) -> None:
    assert "".join(span.text for span in line_of([Span("", text) for text in texts], width)) == line


def test_a_folded_text_that_is_cut_tells_that_there_is_more() -> None:
    assert folded_into("one two three four", 9, 2) == ["one two", "three fo~"]
    assert folded_into("one two three", 9, 2) == ["one two", "three"]
    assert folded_into("a" * 30, 9, 2) == ["a" * 9, "a" * 8 + "~"]


def test_the_screen_counts_the_cells_of_every_character_as_this_does() -> None:
    for code in range(0x11000):
        text = clean(chr(code))
        assert str_util.calc_width(text, 0, len(text)) == width_of(text), hex(code)
