"""Which addresses are in a set of networks."""

from __future__ import annotations

import ipaddress

import pytest

from mailismus.mail.networks import Networks

EVERYTHING = Networks.of([ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")])
SOME = Networks.of([ipaddress.ip_network("255.255.255.255/32"), ipaddress.ip_network("2001:db8::/32")])


@pytest.mark.parametrize("host", ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "fe80::1%eth0"])
def test_an_address_is_in_the_network_of_everything(host: str) -> None:
    assert host in EVERYTHING


@pytest.mark.parametrize("host", ["", "unknown", "192.0.2", "192.0.2.1.5", "::x", b"192.0.2.1", None])
def test_what_is_no_address_is_in_no_network(host: object) -> None:
    for _ in range(2):
        assert host not in EVERYTHING
        assert host not in SOME


def test_an_ipv4_address_mapped_into_ipv6_counts_as_that_address() -> None:
    assert "::ffff:255.255.255.255" in SOME
    assert "255.255.255.254" not in SOME
    assert "2001:db8:1::" in SOME
    assert "2001:db9::" not in SOME
