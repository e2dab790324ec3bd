"""Names as text and as octets."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.dns.name import BadName, NameReader, encode_name, is_host_name, to_ascii


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ("Example.NET", "example.net"),
        ("example.net.", "example.net"),
        ("localhost", "localhost"),
        ("mail_1.example", "mail_1.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
        ("", None),
        (".", None),
        ("a..b", None),
        ("-a.example", None),
        ("a-.example", None),
        ("a b.example", None),
        ("a\r\n.example", None),
        ("a" * 64 + ".example", None),
        (".".join(["a" * 60] * 5), None),
        ("ü" * 70 + ".example", None),
        ("ü" * 100_000, None),
        ("a‮b.example", None),
        ("xn--ü.example", None),
    ],
)
def test_a_domain_becomes_a_name_or_is_none(domain: str, name: str | None) -> None:
    assert to_ascii(domain) == name


@given(st.lists(st.binary(min_size=1, max_size=63), max_size=5))
def test_names_are_written_as_others_write_them_and_read_again(labels: list[bytes]) -> None:
    name = dns.name.Name([*(label.lower() for label in labels), b""]) if sum(len(x) + 1 for x in labels) < 255 else None
    if name is None:
        return
    wire = name.to_wire()
    assert wire is not None
    text, end = NameReader(wire).read(0)
    assert end == len(wire)
    assert encode_name(text) == wire
    assert text.isascii()
    assert text.isprintable()
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
    assert is_host_name(text) <= all(octet in plain for label in labels for octet in label.lower())


@pytest.mark.parametrize("name", ["a..b", "a" * 64, ".".join(["a" * 49] * 6), "ü.example", "a\\999.b"])
def test_a_name_that_has_no_octets_is_not_written(name: str) -> None:
    with pytest.raises(BadName):
        encode_name(name)


def test_capitals_on_the_wire_do_not_count() -> None:
    assert NameReader(b"\7EXAMPLE\3Net\0").read(0) == ("example.net", 13)


def test_pointers_share_the_tails_of_names() -> None:
    wire = b"\7example\3net\0\2mx\xc0\0\1a\xc0\x0d"
    reader = NameReader(wire)
    assert reader.read(0) == ("example.net", 13)
    assert reader.read(13) == ("mx.example.net", 18)
    assert reader.read(18) == ("a.mx.example.net", 22)
    assert reader.read(13) == ("mx.example.net", 18)
    assert reader.read(16) == ("example.net", 18)


@pytest.mark.parametrize(
    "wire",
    [
        b"\xc0\0",
        b"\xc0\2\xc0\0",
        b"\1a\xc0\0",
        b"\xc0",
        b"\5abc",
        b"\1a",
        b"",
        b"\x40a\0",
        b"\x80a\0",
        b"\xc0\x09\0",
        b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 3 + b"\0",
    ],
)
def test_a_name_that_goes_in_a_circle_or_nowhere_is_bad(wire: bytes) -> None:
    with pytest.raises(BadName):
        NameReader(wire).read(0)


def test_a_name_that_grows_too_long_by_pointers_is_bad() -> None:
    wire = b"\x3f" + b"a" * 63 + b"\0"
    places = [0]
    for _ in range(3):
        places.append(len(wire))
        wire += b"\x3f" + b"b" * 63 + bytes((0xC0 | places[-2] >> 8, places[-2] & 0xFF))
    reader = NameReader(wire)
    for place in places[:3]:
        reader.read(place)
    with pytest.raises(BadName):
        reader.read(places[3])
    with pytest.raises(BadName):
        NameReader(wire).read(places[3])
