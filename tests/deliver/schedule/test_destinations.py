"""Destinations: one for each next hop, kept while its hosts are known."""

from __future__ import annotations

import pytest

from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.destinations import KnownDestinations
from tests.deliver.harness import deliver_settings

ONE, TWO = NextHop("one.example", 25), NextHop("two.example", 25)


def known(max_unused: int = 10) -> KnownDestinations:
    return KnownDestinations(LimitsOf(deliver_settings()), max_unused)


def test_a_next_hop_has_one_destination() -> None:
    found = known()
    assert found.of(ONE) is found.of(ONE)
    assert found.of(ONE) is not found.of(TWO)


def test_it_is_forgotten_when_its_hosts_are_not_known_any_more() -> None:
    found = known()
    one = found.of(ONE)
    one.set_located(5.0)
    found.forget_if_unused(one)
    found.collect(4.9)
    assert found.of(ONE) is one
    assert found.has_unused
    found.collect(5.0)
    assert not found.has_unused
    assert found.of(ONE) is not one


@pytest.mark.parametrize("is_locating", [False, True])
def test_one_that_is_in_use_again_is_not_forgotten(is_locating: bool) -> None:
    found = known()
    one = found.of(ONE)
    found.forget_if_unused(one)
    if is_locating:
        one.begin_locating()
    else:
        one.entries = 1
    found.collect(100.0)
    assert found.of(ONE) is one
    assert not found.has_unused


def test_one_with_entries_is_not_unused() -> None:
    found = known()
    found.of(ONE).entries = 1
    found.forget_if_unused(found.of(ONE))
    assert not found.has_unused


def test_of_too_many_the_earliest_are_forgotten_first() -> None:
    found = known(max_unused=1)
    one, two = found.of(ONE), found.of(TWO)
    for destination in (one, two):
        destination.set_located(1000.0)
        found.forget_if_unused(destination)
    found.collect(0.0)
    assert list(found.by_next_hop) == [TWO]
    assert found.of(TWO) is two
