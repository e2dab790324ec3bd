"""The grammar of addresses."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.address import (
    MAX_ADDRESS,
    domain_of,
    is_domain,
    is_literal,
    is_mailbox,
    local_part_of,
    mailbox_of,
    parse_path,
)

LONG_DOMAIN = b".".join([b"d" * 63] * 3)

GOOD = [
    b"joe@example.org",
    b"Joe.Smith+tag@Example.ORG",
    b"a!b%c@example.org",
    b"{|}~`_^?=/-+*'&%$#!@x",
    b'"joe"@example.org',
    b'"joe smith"@example.org',
    b'"joe@home"@example.org',
    b'"a\\"b\\\\c"@example.org',
    b'"a>b"@example.org',
    b'""@example.org',
    b"joe@[192.0.2.1]",
    b"joe@[IPv6:2001:db8::1]",
    b"joe@[ipv6:::ffff:192.0.2.1]",
    b"joe@xn--bcher-kva.example",
    b"joe@1.example",
    b"l" * 64 + b"@example.org",
    b"joe@" + b"d" * 63,
    b"j@" + LONG_DOMAIN + b"." + b"e" * 60,
    b'"' + b"q" * 62 + b'"@example.org',
]

BAD = [
    b"",
    b"joe",
    b"@example.org",
    b"joe@",
    b"joe@example.org.",
    b"joe@.example.org",
    b"joe@example..org",
    b"joe@-example.org",
    b"joe@example-.org",
    b"joe@ex_ample.org",
    b".joe@example.org",
    b"joe.@example.org",
    b"joe..smith@example.org",
    b"joe smith@example.org",
    b"joe@@example.org",
    b"joe@our@other.example",
    b"<joe@example.org>",
    b"joe>@example.org",
    b"joe@example.org\n",
    b"joe@example.org\r\n",
    b"joe\0@example.org",
    b"joe@exa\0mple.org",
    b"joe@example.org\0",
    b'"joe\n"@example.org',
    b'"joe\\\n"@example.org',
    b'"joe\\\r"@example.org',
    b'"joe\\\0"@example.org',
    b'"joe\t"@example.org',
    b'"joe\x7f"@example.org',
    b'"joe\\\x7f"@example.org',
    b'"joe"smith@example.org',
    b'"joe@example.org',
    b'"joe\\"@example.org',
    "jöe@example.org".encode(),
    "joe@exämple.org".encode(),
    b"j\xf6e@example.org",
    "joe@example.org\u2028".encode(),
    "joe@example\u3002org".encode(),
    "joe@\u0661.example".encode(),
    b"joe@[192.0.2.256]",
    b"joe@[192.0.2]",
    b"joe@[192.0.2.01]",
    b"joe@[2001:db8::1]",
    b"joe@[IPv6:2001:db8:::1]",
    b"joe@[IPv6:fe80::1%eth0]",
    b"joe@[tag:content]",
    b"joe@[]",
    b"joe@[192.0.2.1",
    b"joe@[192.0.2.1].org",
    b"l" * 65 + b"@example.org",
    b"joe@" + b"d" * 64,
    b"j@" + LONG_DOMAIN + b"." + b"e" * 61,
    b'"' + b"q" * 63 + b'"@example.org',
    b'"' + b"\\q" * 32 + b'"@example.org',
    b'"joe"@' + LONG_DOMAIN + b"." + b"e" * 60,
]


@pytest.mark.parametrize("address", GOOD)
def test_what_the_grammar_allows_is_a_mailbox(address: bytes) -> None:
    assert is_mailbox(address)
    assert parse_path(address) == address


@pytest.mark.parametrize("address", BAD)
def test_what_the_grammar_forbids_is_no_mailbox(address: bytes) -> None:
    assert not is_mailbox(address)


@pytest.mark.parametrize(
    ("path", "mailbox"),
    [
        (b"@a.example:joe@example.org", b"joe@example.org"),
        (b"@a.example,@b.example:joe@example.org", b"joe@example.org"),
        (b"@a.example:", None),
        (b"@a.example", None),
        (b"@a.example:@b.example:joe@example.org", None),
        (b"@a.example,b.example:joe@example.org", None),
        (b"@:joe@example.org", None),
        (b"@a\n:joe@example.org", None),
        (b"@a.example:joe@example.org.", None),
    ],
)
def test_a_source_route_is_dropped_and_what_is_behind_it_counts(path: bytes, mailbox: bytes | None) -> None:
    assert parse_path(path) == mailbox


@pytest.mark.parametrize(
    ("address", "local_part", "domain"),
    [
        (b"Joe@Example.ORG", b"Joe", b"example.org"),
        (b'"joe"@example.org', b"joe", b"example.org"),
        (b'"a\\"b\\\\c@d"@example.org', b'a"b\\c@d', b"example.org"),
        (b'""@example.org', b"", b"example.org"),
        (b"joe@[IPv6:2001:DB8::1]", b"joe", b"[ipv6:2001:db8::1]"),
        (b"postmaster", b"postmaster", b""),
        (b"", b"", b""),
    ],
)
def test_the_parts_of_an_address(address: bytes, local_part: bytes, domain: bytes) -> None:
    assert (local_part_of(address), domain_of(address)) == (local_part, domain)


def test_a_domain_has_at_most_255_bytes() -> None:
    longest = LONG_DOMAIN + b"." + b"e" * 63
    assert len(longest) == 255
    assert is_domain(longest)
    assert not is_domain(longest[:-1] + b".e")
    assert not is_domain(b"a." * 128 + b"a")


@pytest.mark.parametrize("text", [b"192.0.2.1", b"[192.0.2.1", b"192.0.2.1]", b"", b"[\xc2\xb2.0.0.1]"])
def test_a_literal_stands_in_brackets(text: bytes) -> None:
    assert not is_literal(text)


LABEL = st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?", fullmatch=True)
DOMAIN = st.lists(LABEL, min_size=1, max_size=5).map(".".join)
ATOM = st.text(string.ascii_letters + string.digits + "!#$%&'*+/=?^_`{|}~-", min_size=1, max_size=10)
DOT_STRING = st.lists(ATOM, min_size=1, max_size=5).map(".".join)
PRINTABLE = "".join(map(chr, range(32, 127)))


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(DOT_STRING, DOMAIN)
def test_every_dot_string_at_a_domain_is_a_mailbox(local_part: str, domain: str) -> None:
    address = f"{local_part}@{domain}".encode()
    assert is_mailbox(address)
    assert local_part_of(address) == local_part.encode()
    assert domain_of(address) == domain.lower().encode()


@given(st.text(PRINTABLE, max_size=31), DOMAIN)
def test_quoting_is_undone(text: str, domain: str) -> None:
    address = f"{quote(text)}@{domain}".encode()
    assert is_mailbox(address)
    assert local_part_of(address) == text.encode()


@given(st.binary(max_size=300))
def test_no_mailbox_holds_a_control_or_8_bit_byte_or_is_too_long(data: bytes) -> None:
    for address in (data, data + b"@example.org", b'"' + data + b'"@x', b"joe@" + data):
        mailbox = parse_path(address)
        if mailbox is not None:
            assert all(32 <= byte < 127 for byte in mailbox)
            assert len(mailbox) <= MAX_ADDRESS


@pytest.mark.parametrize("address", GOOD)
def test_every_mailbox_is_the_same_in_another_spelling_and_keeps_the_case_of_its_local_part(address: bytes) -> None:
    local_part, _, domain = address.rpartition(b"@")
    same = local_part + b"@" + domain.swapcase()
    assert mailbox_of(same) == mailbox_of(address)
    if not local_part.startswith(b'"'):
        assert mailbox_of(b'"%b"@%b' % (local_part, domain)) == mailbox_of(address)
    if local_part.lower() != local_part.swapcase():
        assert mailbox_of(local_part.swapcase() + b"@" + domain) != mailbox_of(address)


@pytest.mark.parametrize(
    "literal", [b"[IPv6:2001:db8::1]", b"[IPV6:2001:DB8:0:0::1]", b"[ipv6:2001:0db8:0000:0000:0000:0000:0.0.0.1]"]
)
def test_an_address_literal_is_one_in_any_notation(literal: bytes) -> None:
    assert mailbox_of(b"joe@" + literal) == (b"joe", b"[ipv6:2001:db8::1]")


@pytest.mark.parametrize("address", [b"postmaster", b"", b"joe@[ipv6:x]"])
def test_what_is_no_mailbox_of_the_grammar_is_taken_as_it_stands(address: bytes) -> None:
    assert mailbox_of(address) == (local_part_of(address), domain_of(address))
