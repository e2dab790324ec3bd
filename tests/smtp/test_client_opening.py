"""The opening of a session: greeting, EHLO, HELO, and what is made of the offers."""

from __future__ import annotations

import pytest

from mailismus.smtp.client.opening import NOTHING, Offers, Opening
from mailismus.smtp.client.reply_parser import MAX_LINES
from mailismus.smtp.client.state import ClientEvent, ClientState
from tests.fakes.transactions import ENVELOPE, RecordingOwner, letters, opened


def offers_of(*lines: bytes) -> Offers:
    opening = Opening(b"me", False)
    assert opening.judge(ClientState.GREETING, 220, b"220 mx") is ClientEvent.EHLO_SENT
    assert opening.command_of(ClientEvent.EHLO_SENT) == b"EHLO me\r\n"
    raw = b"\n".join([b"250-mx"] + [b"250-" + line for line in lines])
    assert opening.judge(ClientState.EHLO, 250, raw) is ClientEvent.OPENED
    return opening.offers


@pytest.mark.parametrize(
    ("lines", "offers"),
    [
        ((), NOTHING),
        ((b"PIPELINING", b"8BITMIME"), Offers(pipelining=True, eightbit=True)),
        ((b"8BITMIME", b"SMTPUTF8"), Offers(eightbit=True, utf8=True)),
        ((b"pipelining ", b"8bitmime"), Offers(pipelining=True, eightbit=True)),
        ((b"SIZE",), Offers(size=True)),
        ((b"SIZE 0",), Offers(size=True)),
        ((b"size 1000",), Offers(size=True, max_size_bytes=1000)),
        ((b"SIZE " + b"9" * 20,), Offers(size=True, max_size_bytes=10**20 - 1)),
        ((b"SIZE " + b"9" * 21,), Offers(size=True)),
        ((b"SIZE " + b"9" * 1900,), Offers(size=True)),
        ((b"SIZE -5",), Offers(size=True)),
        ((b"SIZE \xb2\xb3",), Offers(size=True)),
        ((b"SIZE 1e3",), Offers(size=True)),
        ((b"SIZE 1 2",), Offers(size=True)),
        ((b"\0\xff", b"", b" ", b"X" * 2000, b"STARTTLS", b"SIZE 7"), Offers(size=True, max_size_bytes=7, starttls=True)),
    ],
)
def test_offers_are_read_and_nonsense_is_none(lines: tuple[bytes, ...], offers: Offers) -> None:
    assert offers_of(*lines) == offers


def test_the_name_that_the_server_says_first_is_no_offer() -> None:
    opening = Opening(b"me", False)
    assert opening.judge(ClientState.EHLO, 250, b"250 PIPELINING") is ClientEvent.OPENED
    assert opening.offers == NOTHING


OPENINGS = {
    "a greeting of many long lines": b"220-" + b"x" * 2000 + b"\r\n",
    "a greeting with controls and 8-bit": b"220-\0\x1b[2J\xff\xfe\r\n",
}


@pytest.mark.parametrize("name", OPENINGS)
def test_a_greeting_may_be_long(name: str) -> None:
    owner = RecordingOwner(letters(1))
    for _ in range(MAX_LINES - 1):
        assert owner.client.receive(OPENINGS[name]) == 0
    assert owner.take_written() == b""
    assert owner.client.receive(b"220 at last\r\n") == 1
    assert owner.take_written() == b"EHLO me.example\r\n"


def test_a_greeting_without_an_end_is_given_up() -> None:
    owner = RecordingOwner(letters(1))
    for _ in range(MAX_LINES + 1):
        owner.client.receive(b"220-more\r\n")
    assert owner.fates == ["unusable 451", "end"]
    assert owner.take_written() == b""


@pytest.mark.parametrize("greeting", [b"220 mx\r\n250 hello\r\n", b"220 mx\r\n2"])
def test_a_server_that_answers_before_it_is_spoken_to_is_not_spoken_to(greeting: bytes) -> None:
    owner = RecordingOwner(letters(1))
    owner.client.receive(greeting)
    assert owner.fates == ["unusable 451", "end"]
    assert owner.take_written() == b""


@pytest.mark.parametrize(
    "refusal", [b"500 what?\r\n", b"502 5.5.2 no\r\n", b"503 eh\r\n", b"550-no\r\n550 no\r\n", b"554 \r\n"]
)
def test_helo_follows_a_refused_ehlo_and_the_host_is_known_for_it(refusal: bytes) -> None:
    owner = RecordingOwner(letters(1))
    owner.client.receive(b"220 mx\r\n")
    owner.client.receive(refusal)
    assert owner.take_written() == b"EHLO me.example\r\nHELO me.example\r\n"
    assert owner.client.opening.needs_helo
    owner.client.receive(b"250-mx\r\n250-PIPELINING\r\n250 SIZE 5\r\n")  # what it says to HELO is no offer
    assert owner.take_written() == b"MAIL FROM:<s@a.example>\r\n"
    assert owner.client.opening.offers == NOTHING


def test_a_host_known_to_need_helo_is_not_asked_again() -> None:
    owner = RecordingOwner(letters(1), needs_helo=True)
    owner.client.receive(b"220 mx\r\n")
    owner.client.receive(b"250 mx\r\n")
    assert owner.take_written() == b"HELO me.example\r\nMAIL FROM:<s@a.example>\r\n"
    assert owner.client.opening.needs_helo


@pytest.mark.parametrize("needs_helo", [False, True])
def test_who_refuses_helo_too_does_not_need_it(needs_helo: bool) -> None:
    owner = RecordingOwner(letters(1), needs_helo=needs_helo)
    for line in [b"220 mx\r\n", b"550 no\r\n", b"550 no\r\n"]:
        owner.client.receive(line)
    assert owner.fates == ["unusable 451"]
    assert not owner.client.opening.needs_helo


def test_starttls_that_is_offered_is_let_be() -> None:
    owner = opened(*letters(1), greeting=b"250-mx\r\n250-STARTTLS\r\n250 PIPELINING\r\n")
    assert owner.take_written() == b"EHLO me.example\r\n" + ENVELOPE
