"""Destinations: which one a domain belongs to, against a slow plain model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailismus.config.values.settings import DestinationSettings
from mailismus.deliver.limits.domains import Destinations

DOMAINS = st.lists(st.sampled_from([b"a", b"b", b"mail"]), min_size=1, max_size=4).map(b".".join)
PATTERNS = st.one_of(DOMAINS, DOMAINS.map(lambda domain: b"*." + domain))


def destination(*domains: bytes) -> DestinationSettings:
    return DestinationSettings(domains, None, None, None, 1)


def fits(pattern: bytes, domain: bytes) -> bool:
    return domain.endswith(pattern[1:]) if pattern.startswith(b"*.") else domain == pattern


@given(st.lists(st.lists(PATTERNS, min_size=1, max_size=3), max_size=5), DOMAINS)
def test_the_first_that_fits_counts(patterns: list[list[bytes]], domain: bytes) -> None:
    destinations = [DestinationSettings(tuple(some), None, None, None, line) for line, some in enumerate(patterns)]
    expected = next((one for one in destinations if any(fits(pattern, domain) for pattern in one.domains)), None)
    assert Destinations(destinations).find(domain) is expected
    assert Destinations(destinations).find(domain.upper()) is expected


def test_a_domain_is_itself_and_a_wildcard_what_is_below() -> None:
    exact, below = destination(b"mail.example"), destination(b"*.mail.example")
    for order in ((exact, below), (below, exact)):
        destinations = Destinations(order)
        assert destinations.find(b"mail.example") is exact
        assert destinations.find(b"a.Mail.example") is below
        assert destinations.find(b"b.a.mail.example") is below
        assert destinations.find(b"amail.example") is None
        assert destinations.find(b"example") is None
        assert destinations.find(b"[192.0.2.1]") is None
