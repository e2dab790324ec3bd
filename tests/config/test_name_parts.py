"""The names of files in maildirs: what the configuration takes is what the strategies take."""

from __future__ import annotations

from itertools import combinations

import pytest

from mailismus.config.values.names import parse_name_parts
from mailismus.config.values.units import UnitError
from mailismus.maildir.names import strategy_of

LETTERS = "#XRIMPQ"


@pytest.mark.parametrize(
    "text", ["".join(some) for size in range(len(LETTERS) + 1) for some in combinations(LETTERS, size)] + ["MM", "Z", "QPM"]
)
def test_what_is_taken_is_a_strategy_and_what_is_refused_is_none(text: str) -> None:
    try:
        strategy_of(parse_name_parts(text), b"mx")
        is_taken = True
    except UnitError:
        is_taken = False
    try:
        strategy_of(text, b"mx")
        is_strategy = True
    except ValueError:
        is_strategy = False
    assert is_taken is is_strategy


def test_a_process_alone_is_no_name_here() -> None:
    with pytest.raises(UnitError, match="this one makes many deliveries: write n_m"):
        parse_name_parts("n")
    assert parse_name_parts("n_m") == "n_m"
