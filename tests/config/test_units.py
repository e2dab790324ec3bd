"""Units: what people write, read and written back."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.config.values import units
from mailismus.config.values.units import UnitError

WHOLE = st.integers(min_value=0, max_value=units.MAX_NUMBER)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1h30m", 5_400_000),
        ("90s", 90_000),
        ("500", 500),
        ("0", 0),
        ("100ms", 100),
        ("1d2h3m4s5ms", 93_784_005),
        ("3m5ms", 180_005),
        ("72h", 259_200_000),
    ],
)
def test_times(text: str, value: int) -> None:
    assert units.parse_time_ms(text) == value


@pytest.mark.parametrize(
    "text", ["", "1x", "30m1h", "1h1h", "1.5h", "-1s", "1 h", "1h30", "٣s", "s", "1H", "9" * 30, "99999999999999d", "1h\n"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        units.parse_time_ms(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("256K", 256_000), ("128Ki", 131_072), ("50M", 50_000_000), ("32Mi", 2**25), ("1G", 10**9), ("1Gi", 2**30), ("7", 7)],
)
def test_sizes(text: str, value: int) -> None:
    assert units.parse_size(text) == value


@pytest.mark.parametrize("text", ["", "K", "1k", "1KB", "1B", "1.5M", "-1", "1 K", "٣K", "1Ti", "999999999999999G", "1K\n"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        units.parse_size(text)


@given(WHOLE)
def test_a_shown_time_reads_as_the_same_time(value: int) -> None:
    assert units.parse_time_ms(units.show_time_ms(value)) == value


@given(WHOLE)
def test_a_shown_size_reads_as_the_same_size(value: int) -> None:
    assert units.parse_size(units.show_size(value)) == value


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (units.parse_time_ms, units.parse_size, units.parse_count):
        with contextlib.suppress(UnitError):
            assert 0 <= parse(text) <= units.MAX_NUMBER


@pytest.mark.parametrize("text", ["Y", "y", "yes", "YES", "True"])
def test_words_for_yes(text: str) -> None:
    assert units.parse_boolean(text) is True


@pytest.mark.parametrize("text", ["N", "n", "No", "FALSE"])
def test_words_for_no(text: str) -> None:
    assert units.parse_boolean(text) is False


@pytest.mark.parametrize("text", ["", "1", "on", "t", "ja"])
def test_other_words_are_neither_yes_nor_no(text: str) -> None:
    with pytest.raises(UnitError, match="Y or N"):
        units.parse_boolean(text)


@given(st.lists(st.text(alphabet="ab1.", min_size=1), max_size=5))
def test_a_joined_list_reads_as_its_items(items: list[str]) -> None:
    assert units.parse_list("  | ".join(items), "|") == items


@pytest.mark.parametrize("text", ["a||b", "|a", "a|", "|"])
def test_an_empty_item_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="empty"):
        units.parse_list(text, "|")
