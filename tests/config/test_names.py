"""Names, networks, tokens and paths as people write them."""

from __future__ import annotations

import contextlib
import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mailismus.config.read.hostname import FALLBACK, find_host_name
from mailismus.config.values import names
from mailismus.config.values.networks import parse_block, show_block
from mailismus.config.values.units import UnitError
from mailismus.mail.networks import unmapped


def test_domains_come_out_in_lower_case() -> None:
    assert names.parse_domain("Mail.Example.NET") == "mail.example.net"


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", "a.b.", "-a.b", "a-.b", "a b", "exämple.net", "1.2.3.4", "a" * 64, "a_b.net", "x@y", "*.a"]
)
def test_what_is_no_domain_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        names.parse_domain(text)


@pytest.mark.parametrize("text", ["alice", "Alice", "a.b", "a+b", "_x", "0", "a-b_c"])
def test_users(text: str) -> None:
    assert names.parse_user(text) == text.lower()


@pytest.mark.parametrize(
    "text", ["", ".", "..", ".a", "a.", "a..b", "a/b", "../x", "-a", "a b", "a\\b", "ä", "a" * 65, "a\x00", "a@b", "a\n"]
)
def test_a_user_never_leads_to_another_directory(text: str) -> None:
    with pytest.raises(UnitError):
        names.parse_user(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("relay.example.net", ("relay.example.net", 25)),
        ("Relay_1:26", ("relay_1", 26)),
        ("127.0.0.1:8025", ("127.0.0.1", 8025)),
        ("192.0.2.1", ("192.0.2.1", 25)),
        ("[2001:db8::1]:587", ("2001:db8::1", 587)),
        ("[::1]", ("::1", 25)),
        ("2001:DB8::1", ("2001:db8::1", 25)),
        ("[::ffff:192.0.2.1]:26", ("192.0.2.1", 26)),
        ("::ffff:c000:201", ("192.0.2.1", 25)),
    ],
)
def test_hosts_with_ports(text: str, value: tuple[str, int]) -> None:
    assert names.parse_host_port(text, 25) == value
    assert names.parse_host_port(names.format_host_port(value), 0) == value


@pytest.mark.parametrize(
    ("text", "address"),
    [("::1", "::1"), ("[::1]", "::1"), ("::ffff:127.0.0.1", "127.0.0.1"), ("fe80::1%eth0", "fe80::1%eth0"), ("", "")],
)
def test_an_interface_is_an_address_and_a_mapped_one_that_of_ipv4(text: str, address: str) -> None:
    assert names.parse_interface(text) == address


@pytest.mark.parametrize(
    "text", ["", ":25", "a:", "a:0", "a:65536", "a:b", "[::1", "[::1]x", "[a]:25", "1.2.3:25", "300.1.1.1", "a b", "[]"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="HOST:PORT"):
        names.parse_host_port(text, 25)


def test_tokens_are_expanded_once() -> None:
    values = {"DIRVAR": "/v/%DIRTOP%", "DIRTOP": "/t"}
    assert names.expand_tokens("%DIRVAR%/q/%DIRTOP%", values) == "/v/%DIRTOP%/q//t"


def test_an_unknown_token_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnitError, match=r"%DIRTMP%.*%DIRVAR%"):
        names.expand_tokens("%DIRTMP%/x", {})


@pytest.mark.parametrize(("text", "path"), [("a/b", "/t/a/b"), ("/x/../y", "/y"), ("%DIRTOP%/q/", "/t/q"), ("./a", "/t/a")])
def test_paths(text: str, path: str) -> None:
    assert names.parse_path(text, "/t", {"DIRTOP": "/t"}) == path


@pytest.mark.parametrize("text", ["", "/x", "..", "a/../../b", ".", "%DIRTOP%"])
def test_an_inner_path_never_leads_out(text: str) -> None:
    with pytest.raises(UnitError):
        names.parse_inner_path(text)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("192.168/16", "192.168.0.0/16"),
        ("10/8", "10.0.0.0/8"),
        ("127.0.0.1", "127.0.0.1/32"),
        ("::1", "::1/128"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
    ],
)
def test_networks(text: str, block: str) -> None:
    assert parse_block(text) == ipaddress.ip_network(block)


@pytest.mark.parametrize(
    ("text", "better"),
    [("::ffff:192.0.2.1", "192.0.2.1"), ("::ffff:10.0.0.0/104", "10.0.0.0/8"), ("::ffff:0:0/96", "0.0.0.0/0")],
)
def test_a_network_that_no_client_would_ever_be_in_is_refused(text: str, better: str) -> None:
    with pytest.raises(UnitError, match=f"write {better}$"):
        parse_block(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "192.168",
        "10.0.0.1/8",
        "1.2.3.4/33",
        "::/129",
        "a.example",
        "1.2.3.4/",
        "1.2.3.4/x",
        "/8",
        "1.2.3.4.5",
        "256/8",
        "fe80::1%eth0",
        "010.0.0.1",
        "1/-1",
    ],
)
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_block(text)


def test_bits_behind_the_prefix_are_named_with_both_meanings() -> None:
    with pytest.raises(UnitError, match=r"10\.0\.0\.0/8 .*10\.0\.0\.1 "):
        parse_block("10.0.0.1/8")


def is_plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether this is not IPv4 mapped into IPv6."""
    return unmapped(address) == address


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6).filter(is_plain)), st.integers(0, 128))
def test_a_shown_network_reads_as_the_same_network(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, prefix: int
) -> None:
    block = ipaddress.ip_network((address, min(prefix, address.max_prefixlen)), strict=False)
    assume(is_plain(block.network_address))
    assert parse_block(show_block(block)) == block


@given(st.text(alphabet="0123456789abcdef.:/%[]", max_size=20))
def test_any_text_is_a_network_or_refused(text: str) -> None:
    for parse in (parse_block, lambda value: names.parse_host_port(value, 25), names.parse_interface):
        with contextlib.suppress(UnitError):
            parse(text)


@pytest.mark.parametrize(
    ("short", "hosts", "full"),
    [
        ("mx.example.net", "", "mx.example.net"),
        ("mx", "127.0.0.1 localhost\n192.0.2.1 mx.example.net mx # us\n", "mx.example.net"),
        ("mx", "192.0.2.1 other.example.net mx\n", "mx"),
        ("mx", "", "mx"),
        ("no name!", "", FALLBACK),
        ("", "", FALLBACK),
    ],
)
def test_the_full_host_name_comes_from_the_hosts_file(short: str, hosts: str, full: str) -> None:
    assert find_host_name(short, hosts) == full
