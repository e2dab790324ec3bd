"""Redirections in the words of a recipient."""

from __future__ import annotations

import pytest

from mailismus.mail.words import LONGEST_WORDS, check_recipient_words
from mailismus.queue.acts.redirect import LONGEST_HOST, Redirect, parse_relay, redirects_of, with_redirects

ONE = Redirect(7, "relay.example:25")
OTHER = Redirect(5, "[2001:db8::1]:2525")


def test_redirections_are_read_as_they_were_written() -> None:
    words = with_redirects(b"act=A3 zz=1", [ONE, OTHER])
    assert words == b"act=A3 via=A7:relay.example:25,A5:[2001:db8::1]:2525 zz=1"
    check_recipient_words(words)
    assert redirects_of(words) == [ONE, OTHER]
    assert with_redirects(words, []) == b"act=A3 zz=1"
    assert with_redirects(None, []) == b""


def test_the_oldest_are_forgotten_and_the_longest_fit() -> None:
    longest = [Redirect(999_999_999, f"{'h' * 49}.{'h' * (LONGEST_HOST - 50)}:65535")] * 3
    words = with_redirects(None, longest)
    assert redirects_of(words) == longest[:2]
    assert len(words) < LONGEST_WORDS / 4


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"A0:h:25",
        b"h:25",
        b"A1:h",
        b"A1:h:0",
        b"A1:h:65536",
        b"A1:h%20x:25",
        b"A1:::25",
        b"A1:[h]:25",
        b"A1:H:25",
        b"A1:\xff:25",
    ],
)
def test_what_does_not_check_tells_of_no_relay(value: bytes) -> None:
    assert redirects_of(b"via=" + value) == []
    assert redirects_of(b"vial=A1:h:25") == []
    assert redirects_of(b"via=A1:%FF:25") == []


@pytest.mark.parametrize(
    ("text", "relay"),
    [("Relay.Example", "relay.example:25"), ("192.0.2.1:26", "192.0.2.1:26"), ("2001:DB8::1", "[2001:db8::1]:25")],
)
def test_a_relay_is_kept_in_one_form(text: str, relay: str) -> None:
    assert parse_relay(text) == parse_relay(relay) == relay


@pytest.mark.parametrize("text", ["joe@x.example", "relay:0", "re lay", "", f"{'h' * 60}.{'h' * 60}", "[::1", "a,b"])
def test_anything_else_is_no_relay(text: str) -> None:
    with pytest.raises(ValueError, match="write "):
        parse_relay(text)
