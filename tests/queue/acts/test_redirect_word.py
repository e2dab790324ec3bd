"""Redirections in the words of a recipient."""

from __future__ import annotations

import pytest

from mailismus.mail.words import LONGEST_WORDS, check_recipient_words
from mailismus.queue.interface import Area, Entry
from mailismus.queue.redirect import (
    LONGEST_ADDRESS,
    LONGEST_HOST,
    LONGEST_TO,
    Redirect,
    final_recipient,
    is_sent_to,
    parse_target,
    redirects_of,
    relay_of,
    with_redirects,
)

ONE = Redirect(7, "relay.example:25")
OTHER = Redirect(5, "[2001:db8::1]:2525")
JOE = Redirect(6, "joe@b.example")
ODD = Redirect(8, '"a,b %"@x.example')
UTF8 = Redirect(9, "jürgen@münchen.example")


def test_redirections_are_read_as_they_were_written() -> None:
    words = with_redirects(b"act=A3 zz=1", [ONE, OTHER])
    assert words == b"act=A3 via=A7:relay.example:25,A5:[2001:db8::1]:2525 zz=1"
    check_recipient_words(words)
    assert redirects_of(words) == [ONE, OTHER]
    assert with_redirects(words, []) == b"act=A3 zz=1"
    assert with_redirects(None, []) == b""


def test_recipients_stand_beside_relays_and_the_newest_act_decides() -> None:
    words = with_redirects(b"act=A3 zz=1", [ODD, ONE, JOE, OTHER])
    assert words == b"act=A3 to=A8:%22a%252Cb%20%2525%22@x.example,A6:joe@b.example".replace(b"%22", b'"') + (
        b" via=A7:relay.example:25,A5:[2001:db8::1]:2525 zz=1"
    )
    check_recipient_words(words)
    assert redirects_of(words) == [ODD, ONE, JOE, OTHER]
    assert (final_recipient(b"a@x", words), relay_of(words)) == (b'"a,b %"@x.example', None)
    words = with_redirects(words, [ONE, JOE, OTHER])
    assert (final_recipient(b"a@x", words), relay_of(words)) == (b"joe@b.example", "relay.example:25")
    words = with_redirects(words, [JOE, OTHER])
    assert (final_recipient(b"a@x", words), relay_of(words)) == (b"joe@b.example", None)
    words = with_redirects(words, [OTHER])
    assert (final_recipient(b"a@x", words), relay_of(words)) == (b"a@x", "[2001:db8::1]:2525")
    assert (final_recipient(b"a@x", None), relay_of(None), relay_of(b"to=1")) == (b"a@x", None, None)


def test_an_entry_tells_its_final_and_its_original_recipient() -> None:
    entry = Entry(1, b"a@x.example", Area.INCOMING, 0.0, words=with_redirects(None, [UTF8]))
    assert (entry.final_recipient, entry.original_recipient) == ("jürgen@münchen.example".encode(), b"a@x.example")
    for words in (None, b"via=A1:h:25", b"to=A1:no"):
        entry.words = words
        assert (entry.final_recipient, entry.original_recipient) == (b"a@x.example", None)


@pytest.mark.parametrize(
    ("recipient", "words", "is_so"),
    [
        (b"joe@B.example", None, True),
        (b'"joe"@b.example', None, True),
        (b"Joe@b.example", None, False),
        (b"a@x", b"to=A1:joe@b.example", True),
        (b"joe@b.example", b"to=A1:a@x", False),
    ],
)
def test_a_recipient_is_known_in_every_spelling(recipient: bytes, words: bytes | None, *, is_so: bool) -> None:
    assert is_sent_to(recipient, words, "joe@b.example") is is_so
    assert not is_sent_to(b"relay", words, "relay:25")


def test_the_oldest_are_forgotten_and_the_longest_fit() -> None:
    longest = [Redirect(999_999_999, f"{'h' * 49}.{'h' * (LONGEST_HOST - 50)}:65535")] * 3
    words = with_redirects(None, longest)
    assert redirects_of(words) == longest[:2]
    assert len(words) < LONGEST_WORDS / 4
    label = "h" * 63
    address = parse_target(f"{'a' * 60}@{label}.{label}.{label}")
    words = with_redirects(words, [Redirect(999_999_998, address), Redirect(999_999_997, address), *longest])
    assert [one.target for one in redirects_of(words)] == [*(one.target for one in longest[:2]), address]
    assert redirects_of(with_redirects(words, [ONE, JOE, UTF8, ODD])) == [UTF8, ONE, JOE]
    most = parse_target("ü" * 31 + "@" + "ü" * 20 + "." + "x" * 60 + "." + "x" * (LONGEST_ADDRESS - 51 * 6 - 63))
    words = with_redirects(None, [Redirect(999_999_999, most)])
    assert len(words) == LONGEST_TO + len("to=")
    assert redirects_of(words) == [Redirect(999_999_999, most)]


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
        b"A1:a@h:25",
    ],
)
def test_what_does_not_check_tells_of_no_relay(value: bytes) -> None:
    assert redirects_of(b"via=" + value) == []
    assert redirects_of(b"vial=A1:h:25") == []
    assert redirects_of(b"via=A1:%FF:25") == []


@pytest.mark.parametrize(
    "value",
    [b"", b"A0:a@b", b"a@b", b"A1:h:25", b"A1:a@b>", b"A1:a%0A@b", b"A1:%FF@b", b"A1:a@b@c", b"A1:@b", b"A1:a@", b"A1:a@-"],
)
def test_what_does_not_check_tells_of_no_recipient(value: bytes) -> None:
    assert redirects_of(b"to=" + value) == []
    assert final_recipient(b"a@x", b"to=" + value) == b"a@x"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Relay.Example", "relay.example:25"),
        ("192.0.2.1:26", "192.0.2.1:26"),
        ("2001:DB8::1", "[2001:db8::1]:25"),
        ("Joe@B.example", "Joe@B.example"),
        ("joe@[IPv6:2001:db8::1]", "joe@[IPv6:2001:db8::1]"),
        ("jürgen@münchen.example", "jürgen@münchen.example"),
    ],
)
def test_a_target_is_kept_in_one_form(text: str, target: str) -> None:
    assert parse_target(text) == parse_target(target) == target


@pytest.mark.parametrize(
    "text",
    [
        *("relay:0", "re lay", "", f"{'h' * 60}.{'h' * 60}", "[::1", "a,b"),
        *("@x", "a@", "a@b@c", "a b@c", "<a@b>", "a@b\n", "a\udcff@b", "\ud800@b", "%" * 64 + "@" + "h" * 63 + ".h" * 9),
        *("ü" * 60 + "@b", "a@" + "ü" * 80 + ".x", "a@b\x00", "a@b,c@d"),
    ],
)
def test_nonsense_is_no_target(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|long"):
        parse_target(text)
