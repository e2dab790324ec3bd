"""Names as text and as octets."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.dns.name import MAX_LABELS, BadName, is_host_name, parse_name, to_ascii, to_text


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
        ("bücher。example", "xn--bcher-kva.example"),
        ("mail_1.bücher.example", None),
        ("\\097ü.example", None),
        ("a\\.b.ü", None),
        ("ü..b", None),
        ("…ü.example", None),
    ],
)
def test_a_domain_becomes_a_name_or_is_none(domain: str, name: str | None) -> None:
    assert to_ascii(domain) == name


@given(st.lists(st.binary(min_size=1, max_size=63), max_size=5).filter(lambda labels: sum(len(x) + 1 for x in labels) < 255))
def test_any_octets_have_a_text_that_means_them(labels: list[bytes]) -> None:
    name = dns.name.Name([*labels, b""])
    text = to_text(name)
    assert parse_name(text) == name
    assert parse_name(text).labels == tuple(label.lower() for label in name.labels)
    assert text.isascii()
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
    assert set(text.encode()) <= {*plain, *b".\\"}
    assert text.count(".") == max(0, len(labels) - 1)
    assert is_host_name(text) <= all(octet in plain for label in labels for octet in label.lower())


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ((b"",), ""),
        ((b"EXAMPLE", b"Net", b""), "example.net"),
        ((b"a.b", b"\r\n", b""), r"a\046b.\013\010"),
        ((b"x,status=sent", b""), r"x\044status\061sent"),
        ((b"\xff\0\\", b""), r"\255\000\092"),
    ],
)
def test_octets_that_could_forge_a_line_are_escaped(labels: tuple[bytes, ...], text: str) -> None:
    assert to_text(dns.name.Name(labels)) == text


@pytest.mark.parametrize(
    "name",
    ["a..b", "a" * 64, ".".join(["a" * 49] * 6), "ü.example", "a\\999.b", "a\\", ".".join("a" * (MAX_LABELS + 1))],
)
def test_a_name_that_has_no_octets_or_too_many_labels_is_not_asked_for(name: str) -> None:
    with pytest.raises(BadName):
        parse_name(name)


def test_as_many_labels_as_are_read_may_be_asked_for() -> None:
    assert len(parse_name(".".join("a" * MAX_LABELS))) == MAX_LABELS + 1
