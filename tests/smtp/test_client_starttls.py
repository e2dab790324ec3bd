"""STARTTLS in the client engine: dialogues, what is forgotten, and bytes that come too early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.smtp.client.engine import ClientEngine
from mailismus.smtp.client.opening import NOTHING
from mailismus.smtp.client.starttls import TlsFailure, TlsFault, TlsUse
from mailismus.smtp.client.state import ClientState
from tests.fakes.transactions import Letter, RecordingOwner, letters

GREETING = b"220 mx\r\n"
OFFER = b"250-mx\r\n250-PIPELINING\r\n250-SIZE 10\r\n250 STARTTLS\r\n"
NO_OFFER = b"250-mx\r\n250-PIPELINING\r\n250 SIZE 10\r\n"
BARE = b"250 mx\r\n"
GO = b"220 go\r\n"
NEVER, IF_OFFERED, DEMANDED, FROM_START = TlsUse
WANTED = [IF_OFFERED, DEMANDED]


def session(use: TlsUse, *some: Letter, needs_helo: bool = False) -> tuple[ClientEngine[Letter], RecordingOwner]:
    owner = RecordingOwner(some, needs_helo=needs_helo, use=use)
    return owner.client, owner


def say(client: ClientEngine[Letter], owner: RecordingOwner, *replies: bytes) -> bytes:
    """What the client sends when it hears this."""
    owner.take_written()
    for reply in replies:
        client.receive(reply)
    return owner.take_written()


@pytest.mark.parametrize("use", WANTED)
def test_after_tls_all_is_said_and_offered_anew(use: TlsUse) -> None:
    client, owner = session(use, *letters(1))
    assert say(client, owner, GREETING) == b"EHLO me.example\r\n"
    assert say(client, owner, OFFER) == b"STARTTLS\r\n"
    assert say(client, owner, GO) == b""
    assert owner.fates == ["start TLS"]
    assert client.state is ClientState.HANDSHAKE
    client.tls_started()
    assert owner.take_written() == b"EHLO me.example\r\n"
    assert client.opening.offers == NOTHING
    assert say(client, owner, BARE).startswith(b"MAIL FROM:<s@a.example>\r\n")  # neither SIZE nor PIPELINING
    assert not client.trust.is_used


def test_tls_from_the_start_comes_before_the_greeting() -> None:
    client, owner = session(FROM_START, *letters(1))
    assert [client.state] == [ClientState.HANDSHAKE]
    client.tls_started()
    assert [client.state] == [ClientState.GREETING]
    assert say(client, owner, GREETING) == b"EHLO me.example\r\n"
    assert say(client, owner, OFFER).startswith(b"MAIL FROM:")  # the offer of STARTTLS means nothing now


def test_it_is_asked_for_once() -> None:
    client, owner = session(DEMANDED, *letters(1))
    say(client, owner, GREETING, OFFER, GO)
    client.tls_started()
    assert say(client, owner, OFFER).startswith(b"MAIL FROM:")


def test_nobody_who_does_not_want_it_asks_for_it() -> None:
    client, owner = session(NEVER, *letters(1))
    assert say(client, owner, GREETING, OFFER).endswith(b"DATA\r\n")


@pytest.mark.parametrize(
    ("replies", "failure"),
    [
        ((GREETING, NO_OFFER), TlsFailure(TlsFault.NOT_OFFERED)),
        ((GREETING, b"502 no\r\n", BARE), TlsFailure(TlsFault.NOT_OFFERED)),  # HELO
        ((GREETING, OFFER, b"454 4.7.0 no\r\n"), TlsFailure(TlsFault.REFUSED, b"454 4.7.0 no")),
        ((GREETING, OFFER, b"501 no\r\n"), TlsFailure(TlsFault.REFUSED, b"501 no")),
        ((GREETING, OFFER, b"334 no\r\n"), TlsFailure(TlsFault.REFUSED, b"334 no")),
    ],
)
def test_where_it_is_not_to_be_had_the_session_ends_or_goes_on(replies: tuple[bytes, ...], failure: TlsFailure) -> None:
    client, owner = session(DEMANDED, *letters(1))
    say(client, owner, *replies)
    assert client.tls_failure == failure
    assert client.state is ClientState.UNUSABLE
    assert owner.fates == ["unusable 451"]
    assert b"MAIL" not in b"".join(owner.writes)
    client, owner = session(IF_OFFERED, *letters(1))
    say(client, owner, *replies)
    assert client.tls_failure is None
    assert b"MAIL" in b"".join(owner.writes)


@pytest.mark.parametrize("use", WANTED)
def test_a_goodbye_to_starttls_ends_the_session(use: TlsUse) -> None:
    client, owner = session(use, *letters(1))
    say(client, owner, GREETING, OFFER, b"421 4.3.2 bye\r\n")
    assert client.tls_failure == TlsFailure(TlsFault.REFUSED, b"421 4.3.2 bye")
    assert owner.fates == ["unusable 451"]


@pytest.mark.parametrize("use", WANTED)
@pytest.mark.parametrize("is_agreed", [False, True])
def test_who_is_lost_meanwhile_fails_to_start_it(use: TlsUse, is_agreed: bool) -> None:
    client, owner = session(use)
    say(client, owner, GREETING, OFFER, *([GO] if is_agreed else []))
    client.lost(b"timed out")
    assert client.tls_failure == TlsFailure(TlsFault.HANDSHAKE, b"timed out")
    assert owner.fates[-1] == "unusable 451"


@pytest.mark.parametrize("replies", [(), (GREETING,), (GREETING, BARE)])
def test_who_is_lost_before_or_behind_does_not(replies: tuple[bytes, ...]) -> None:
    client, owner = session(IF_OFFERED)
    say(client, owner, *replies)
    client.lost(b"timed out")
    assert client.tls_failure is None


def test_a_certificate_that_is_not_good_enough_ends_the_session() -> None:
    client, owner = session(DEMANDED, *letters(1))
    say(client, owner, GREETING, OFFER, GO)
    failure = TlsFailure(TlsFault.WRONG_NAME, b"is for a, not b")
    client.tls_failed(failure)
    client.tls_failed(TlsFailure(TlsFault.HANDSHAKE, b"later"))
    client.lost(b"connection lost")
    assert client.tls_failure is failure
    assert owner.fates == ["start TLS", "unusable 451"]


def test_a_host_that_knows_no_ehlo_is_asked_by_ehlo_where_tls_is_demanded() -> None:
    client, owner = session(DEMANDED, needs_helo=True)
    assert say(client, owner, GREETING) == b"EHLO me.example\r\n"
    client, owner = session(IF_OFFERED, needs_helo=True)
    assert say(client, owner, GREETING) == b"HELO me.example\r\n"


def test_a_stop_within_it_is_an_end() -> None:
    client, owner = session(DEMANDED)
    say(client, owner, GREETING, OFFER, GO)
    assert not client.cut_off()
    assert client.state is ClientState.UNUSABLE
    assert client.tls_failure is None


@given(st.binary(min_size=1, max_size=60), st.sampled_from(WANTED))
def test_no_byte_behind_its_reply_is_used(injected: bytes, use: TlsUse) -> None:
    client, owner = session(use, *letters(1))
    say(client, owner, GREETING, OFFER)
    assert say(client, owner, GO + injected) == b""
    assert client.tls_failure == TlsFailure(TlsFault.INJECTED)
    assert owner.fates == ["unusable 451"]
    assert client.receive(b"250 more\r\n") == 0


@given(st.lists(st.integers(0, 200), max_size=5))
def test_a_dialogue_in_any_pieces_is_the_same(cuts: list[int]) -> None:
    client, owner = session(DEMANDED, *letters(1))
    dialogue = GREETING, OFFER, GO
    for reply in dialogue:
        last = 0
        for cut in sorted({min(cut, len(reply)) for cut in cuts} | {len(reply)}):
            client.receive(reply[last:cut])
            last = cut
    assert client.state is ClientState.HANDSHAKE
    assert b"".join(owner.writes) == b"EHLO me.example\r\nSTARTTLS\r\n"
