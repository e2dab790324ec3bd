"""Peers as text."""

from __future__ import annotations

import pytest
from twisted.internet.testing import StringTransport

from mailismus.net.peer import counted_as, literal_of, peer_host, plain_host


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::ffff:0:1", "::ffff:0:1"),
    ],
)
def test_mapping_and_scope_are_dropped(host: str, plain: str) -> None:
    assert plain_host(host) == plain


def test_addresses_of_one_64_are_counted_together() -> None:
    assert counted_as("2001:db8:0:1::1") == counted_as("2001:db8:0:1:ffff::2")
    assert counted_as("2001:db8:0:1::1") != counted_as("2001:db8:0:2::1")
    assert counted_as("192.0.2.1") != counted_as("192.0.2.2")


def test_an_address_is_shown_as_the_rfc_says() -> None:
    assert literal_of("192.0.2.1") == b"[192.0.2.1]"
    assert literal_of("2001:db8::1") == b"[IPv6:2001:db8::1]"


def test_a_transport_without_an_address_has_an_unknown_peer() -> None:
    assert peer_host(StringTransport()) == "192.168.1.1"  # type: ignore[no-untyped-call]  # Twisted's
    assert peer_host(StringTransport(peerAddress=object())) == "unknown"  # type: ignore[no-untyped-call]  # Twisted's
