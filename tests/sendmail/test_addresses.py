"""Addresses in header fields, and what is refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.sendmail.addresses import AddressError, bare, listed, parse_addresses, qualify


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b" root (Cron Daemon)\r\n", [b"root"]),
        (b'"Doe, John" <j@d.example>, sue@x', [b"j@d.example", b"sue@x"]),
        (b"a: b@c, Dee <d@e>;, f", [b"b@c", b"d@e", b"f"]),
        (b"undisclosed-recipients:;", []),
        (b"Foo <@a,@b:u@c>", [b"u@c"]),
        (b'"a b"@c.example', [b'"a b"@c.example']),
        (b'"a\\"b,c"@d', [b'"a\\"b,c"@d']),
        (b"u@[IPv6:::1], v@[192.0.2.1]", [b"u@[IPv6:::1]", b"v@[192.0.2.1]"]),
        (b"a @ b . c", [b"a@b.c"]),
        (b"a (c \\) (d)) , b", [b"a", b"b"]),
        (b"x,,\r\n\ty,", [b"x", b"y"]),
        (b"=?utf-8?q?J=C3=B6?= <a@b>", [b"a@b"]),
        ("Jörg <j@ö.example>".encode(), ["j@ö.example".encode()]),
        (b"", []),
    ],
)
def test_forms_of_lists(text: bytes, found: list[bytes]) -> None:
    assert parse_addresses(text) == found


@pytest.mark.parametrize(
    "text",
    [
        b"joe sue",
        b"<>",
        b"a;b",
        b"a<b@c> d",
        b"<a@b> <c@d>",
        b"a\\b@c",
        b"g: h: i;;",
        b"x (",
        b'"x',
        b"<a",
        b"a>",
        b"g: a",
        b":a;",
    ],
)
def test_what_would_be_guessed_is_refused(text: bytes) -> None:
    with pytest.raises(AddressError):
        parse_addresses(text)


@given(
    st.lists(
        st.sampled_from(
            [b"a", b"@", b".", b" ", b"<", b">", b",", b":", b";", b"(", b")", b'"', b"\\", b"\r\n ", b"[", b"]"]
        )
    )
)
def test_any_text_has_addresses_or_an_error(parts: list[bytes]) -> None:
    try:
        found = parse_addresses(b"".join(parts))
    except AddressError:
        return
    assert all(found)


def test_an_address_without_a_domain_gets_the_origins() -> None:
    assert qualify(b"root", b"our.example") == b"root@our.example"
    assert qualify(b"a@b", b"our.example") == b"a@b"
    assert qualify(b'"a@b"', b"our.example") == b'"a@b"@our.example'
    assert qualify(b"", b"our.example") == b""


def test_an_address_of_a_command_line_may_have_a_name() -> None:
    assert bare(b"Joe Doe <j@d.example>") == b"j@d.example"
    assert bare(b" j@d.example ") == b"j@d.example"


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        (b"joe", [b"joe"]),
        (b"joe,sue@d.example", [b"joe", b"sue@d.example"]),
        (b"Joe <j@d.example>, sue", [b"j@d.example", b"sue"]),
        (b'"a,b"@d.example', [b'"a,b"@d.example']),
        (b"Doe, John <j@d.example", [b"Doe, John <j@d.example"]),
        (b"a b", [b"a b"]),
        (b"", [b""]),
        (b" , ", [b","]),
        (b"-v", [b"-v"]),
    ],
)
def test_an_argument_may_be_a_list(argument: bytes, found: list[bytes]) -> None:
    assert listed(argument) == found


@pytest.mark.parametrize("address", [b'"\\' * 50_000, b'"' * 100_001, b'"a' * 50_001])
def test_quotes_without_an_end_take_no_long_time(address: bytes) -> None:
    began = time.process_time()
    assert qualify(address, b"d").endswith(b"@d")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (b'<@a:"x:y"@c>', b'"x:y"@c'),
        (b"<@a,@b:u@[IPv6:2001::1]>", b"u@[IPv6:2001::1]"),
        (b"<@[IPv6:::1],@b:u@c>", b"u@c"),
    ],
)
def test_a_route_ends_where_its_colon_is(text: bytes, address: bytes) -> None:
    assert parse_addresses(text) == [address]
