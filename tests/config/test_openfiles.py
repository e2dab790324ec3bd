"""Open files: which limits give way to the hard limit, and which are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.config.read.document import parse
from mailismus.config.read.load import load_tree
from mailismus.config.values.open_files import (
    LEAST,
    LEAST_OF_FEW,
    LEAST_RESERVE,
    PER_CONNECTION,
    RESERVE,
    Demand,
    TooMany,
    fit,
    reserve_of,
)

DEFAULTS = [Demand(2000, True), Demand(2500, True)]


def test_without_a_limit_all_stays() -> None:
    assert fit([*DEFAULTS, Demand(0, True)], None) == [2000, 2500, 0]


def test_defaults_that_fit_stay() -> None:
    assert fit(DEFAULTS, RESERVE + PER_CONNECTION * 4500) == [2000, 2500]


def test_defaults_are_lowered_to_fit() -> None:
    limits = fit(DEFAULTS, 1024)
    assert isinstance(limits, list)
    assert RESERVE + PER_CONNECTION * sum(limits) <= 1024
    assert limits[0] < limits[1] < 2500


def test_what_was_set_is_refused_with_what_there_is_room_for() -> None:
    refused = fit([Demand(5000, False), Demand(2500, True)], 4096)
    assert isinstance(refused, TooMany)
    assert refused.index == 0
    assert fit([Demand(refused.room, False), Demand(2500, True)], 4096) == [refused.room, LEAST]
    assert isinstance(fit([Demand(refused.room + 1, False), Demand(2500, True)], 4096), TooMany)


def test_a_limit_too_low_for_anything_names_nobody() -> None:
    assert fit(DEFAULTS, LEAST_RESERVE + 2 * PER_CONNECTION * LEAST_OF_FEW - 1) == TooMany(None, 0)


def test_a_very_low_limit_is_enough_for_a_few() -> None:
    limits = fit(DEFAULTS, 64)
    assert isinstance(limits, list)
    assert min(limits) >= LEAST_OF_FEW
    assert reserve_of(64) + PER_CONNECTION * sum(limits) <= 64


@pytest.mark.parametrize(("limit", "kept"), [(0, 32), (64, 32), (512, 128), (1024, 256), (20_000, 256)])
def test_files_that_are_not_for_connections(limit: int, kept: int) -> None:
    assert reserve_of(limit) == kept


def test_what_the_queue_holds_open_is_not_for_connections() -> None:
    assert fit([Demand(0, True)], 1024, 92) == [(1024 - RESERVE - 92) // PER_CONNECTION]
    assert fit(DEFAULTS, 1024, 1000) == TooMany(None, 0)


@pytest.mark.parametrize(("provider", "held"), [("chunk", 92), ("clustered", 0)])
def test_the_parts_of_a_queue_are_taken_from_the_connections(provider: str, held: int) -> None:
    """23 parts, of each four directories."""
    text = f'<mailserver><mta><queue provider="{provider}"/></mta></mailserver>'.encode()
    settings = load_tree(parse(text, "f"), "f", "mx.example.net", 1100).settings
    assert [settings.listeners[0].server.maxconnections, settings.deliver.maxconnections] == fit(DEFAULTS, 1100, held)


def test_no_limit_gets_what_is_left() -> None:
    assert fit([Demand(0, True), Demand(2500, True)], RESERVE + PER_CONNECTION * 10_000) == [7500, 2500]


@given(
    st.lists(
        st.builds(Demand, st.integers(0, 10_000), st.just(True)) | st.builds(Demand, st.integers(1, 10_000), st.just(False)),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 100_000),
)
def test_what_is_given_fits_and_nothing_set_is_changed(demands: list[Demand], hard_limit: int) -> None:
    limits = fit(demands, hard_limit)
    if isinstance(limits, TooMany):
        return
    assert reserve_of(hard_limit) + PER_CONNECTION * sum(limits) <= hard_limit
    for demand, limit in zip(demands, limits, strict=True):
        assert limit == demand.wanted if not demand.is_flexible else limit > 0 and limit <= (demand.wanted or limit)
