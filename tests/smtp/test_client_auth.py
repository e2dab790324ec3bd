"""Authentication in a client session: when it comes, and what ends the session there."""

from __future__ import annotations

import pytest

from mailismus.smtp.client.opening import Offers
from mailismus.smtp.client.state import ClientState
from tests.fakes.transactions import ENVELOPE, RecordingOwner, letters

GREETING, EHLO = b"220 mx\r\n", b"250-mx\r\n250-PIPELINING\r\n250 AUTH PLAIN login\r\n"


def authenticating(*, count: int = 1) -> RecordingOwner:
    """A session whose credentials are to be shown now."""
    owner = RecordingOwner(letters(count), wants_auth=True)
    owner.client.receive(GREETING)
    owner.client.receive(EHLO)
    owner.take_written()
    return owner


def test_the_offer_of_ehlo_is_read() -> None:
    owner = authenticating()
    assert owner.client.opening.offers == Offers(pipelining=True, auth=frozenset(("PLAIN", "LOGIN")))


def test_credentials_are_shown_before_the_first_transaction() -> None:
    owner = authenticating()
    assert owner.fates == ["start auth"]
    assert owner.client.state is ClientState.AUTH
    assert not owner.client.is_session
    owner.client.send_auth(bytearray(b"AUTH LOGIN\r\n"))
    owner.client.receive(b"334 VXNlcm5hbWU6\r\n")
    owner.client.send_auth(b"am9l\r\n")
    assert owner.take_written() == b"AUTH LOGIN\r\nam9l\r\n"
    owner.client.receive(b"235 ok\r\n")
    assert owner.fates == ["start auth", "auth 334", "auth 235"]
    owner.client.authenticated()
    assert owner.client.is_session
    assert owner.take_written() == ENVELOPE


def test_without_credentials_nothing_changes() -> None:
    owner = RecordingOwner(letters(1))
    owner.client.receive(GREETING)
    owner.client.receive(EHLO)
    assert owner.fates == []
    assert owner.take_written().endswith(ENVELOPE)


def test_after_helo_credentials_are_shown_too_or_the_session_ends() -> None:
    owner = RecordingOwner(letters(1), wants_auth=True)
    owner.client.receive(GREETING)
    owner.client.receive(b"502 what\r\n")
    owner.client.receive(b"250 mx\r\n")
    assert owner.client.state is ClientState.AUTH
    assert owner.client.opening.offers.auth == frozenset()


@pytest.mark.parametrize("data", [b"250 early\r\n", b"334 \r\n", b"334 part", b"nonsense\r\n"])
def test_a_reply_that_nobody_asked_for_ends_the_session(data: bytes) -> None:
    owner = authenticating()
    owner.client.receive(data)
    assert owner.client.state is ClientState.UNUSABLE
    assert "auth 250" not in owner.fates


@pytest.mark.parametrize("data", [b"235 ok\r\n250 more\r\n", b"235 ok\r\n25"])
def test_a_reply_with_more_behind_it_ends_the_session(data: bytes) -> None:
    owner = authenticating()
    owner.client.send_auth(b"AUTH PLAIN x\r\n")
    owner.client.receive(data)
    assert owner.client.state is ClientState.UNUSABLE
    assert owner.fates[1:] != ["auth 235"]


def test_words_that_come_too_early_may_repeat_the_secret_and_are_not_told() -> None:
    owner = authenticating()
    owner.client.send_auth(b"AUTH PLAIN x\r\n")
    owner.client.receive(b"334 \r\n535 hunter2 is wrong\r\n")
    assert owner.texts == [b"451 4.4.2 a reply came before its command while the session was set up"]


def test_421_goes_to_the_owner_at_any_time() -> None:
    owner = authenticating()
    owner.client.receive(b"421 4.7.0 too many failures\r\n")
    assert owner.fates[:2] == ["start auth", "auth 421"]


def test_lines_after_the_end_are_not_sent() -> None:
    owner = authenticating()
    owner.client.lost(b"connection lost")
    owner.client.send_auth(b"AUTH PLAIN x\r\n")
    owner.client.authenticated()
    assert owner.take_written() == b""
    assert owner.client.state is ClientState.UNUSABLE
