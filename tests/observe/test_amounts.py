"""Amounts in few characters."""

from __future__ import annotations

from datetime import UTC

import pytest

from mailismus.observe.amounts import amount, lately

NOW = 1_795_000_000.0


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.001, "<0.1"),
        (0.049, "<0.1"),
        (0.05, "0.1"),
        (0.44, "0.4"),
        (3.0, "3"),
        (9.96, "10"),
        (4310.2, "4310"),
        (86_400.0 * 5, "432k"),
        (1_234_567.0, "1.2M"),
        (5e9, "5.0G"),
    ],
)
def test_a_number_is_told_in_five_cells_and_what_is_not_nothing_is_not_told_as_nothing(
    value: float | None, told: str
) -> None:
    assert amount(value) == told
    assert len(told) <= 5


def test_a_moment_of_another_day_has_its_date() -> None:
    assert lately(NOW - 60, NOW, UTC) == "11:05:40"
    assert lately(NOW - 12 * 3600 - 1, NOW, UTC) == "Nov 17 23h"
    assert lately(1e300, NOW, UTC) == "-"
