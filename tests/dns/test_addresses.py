"""Which addresses mail may go to."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.dns.addresses import Loopback, order_addresses, to_destination


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "169.254.0.1", "224.0.0.1", "239.255.255.255"),
        *("255.255.255.255", "::", "::1", "fe80::1", "febf::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0"),
        *("::ffff:169.254.1.1", "::ffff:224.0.0.1", "::127.0.0.1", "::192.0.2.1", "fe80::1%eth0", "2001:db8::1%eth0"),
        *("", "example.net", "192.0.2", "192.0.2.1.", "[::1]", "192.0.2.1\n"),
    ],
)
def test_no_mail_goes_to_this_address(address: str) -> None:
    assert to_destination(address, Loopback.REFUSED) is None


@pytest.mark.parametrize(
    ("address", "usable"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("126.255.255.255", "126.255.255.255"),
        ("128.0.0.1", "128.0.0.1"),
        ("1.0.0.0", "1.0.0.0"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("fec0::1", "fec0::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_mail_goes_to_this_address(address: str, usable: str) -> None:
    assert to_destination(address, Loopback.REFUSED) == usable


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_this_host_may_be_allowed(address: str) -> None:
    assert to_destination(address, Loopback.ALLOWED) == address.removeprefix("::ffff:")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "169.254.0.1", "fe80::1", "224.0.0.1", "::127.0.0.1"])
def test_allowing_this_host_allows_nothing_else(address: str) -> None:
    assert to_destination(address, Loopback.ALLOWED) is None


@given(st.text(max_size=50))
def test_no_text_raises(text: str) -> None:
    to_destination(text, Loopback.ALLOWED)


def test_families_take_turns_and_each_is_shuffled() -> None:
    v4, v6 = [f"192.0.2.{number}" for number in range(4)], ["2001:db8::1", "2001:db8::2"]
    orders = {order_addresses(v4, v6, random.Random(seed)) for seed in range(50)}
    assert len(orders) > 20
    for order in orders:
        assert sorted(order) == sorted(v4 + v6)
        assert [":" in address for address in order] == [False, True, False, True, False, False]


def test_an_address_named_twice_is_tried_once() -> None:
    assert order_addresses(["192.0.2.1", "192.0.2.1"], ["192.0.2.1"], random.Random(1)) == ("192.0.2.1",)
