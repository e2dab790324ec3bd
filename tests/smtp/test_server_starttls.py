"""The server's engine and TLS: STARTTLS as dialogues, what is dropped, forgotten, and refused before TLS."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import Security, ServerLimits
from mailismus.smtp.server.state import ServerState
from tests.smtp.test_server_dialogues import ACCEPTED, HELLO, Recorder

TRANSACTION = b"MAIL FROM:<a@x>\r\nRCPT TO:<b@y>\r\nDATA\r\n.\r\n"
ANSWERS = replies.SENDER_OK + replies.RECIPIENT_OK + replies.START_CONTENT + ACCEPTED
LINES = (
    b"250-mx.example\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n",
    b"250 ENHANCEDSTATUSCODES\r\n",
)
PLAIN_EHLO = LINES[0] + LINES[1]
OFFERING_EHLO = LINES[0] + b"250-STARTTLS\r\n" + LINES[1]


def make(security: Security, max_errors: int = 10, is_slow: bool = False) -> tuple[ServerEngine, Recorder]:
    receiver = Recorder(is_slow)
    return ServerEngine(ServerLimits(b"mx.example", 1000, max_errors, security), receiver), receiver


def feed(server: ServerEngine, receiver: Recorder, pieces: list[bytes]) -> bytes:
    out = b""
    for piece in pieces:
        out += server.receive(piece)
        while receiver.pending or server.has_more:
            out += server.answer(receiver.pending.pop()) if receiver.pending else server.receive(b"")
    return out


DIALOGUES: dict[str, tuple[Security, bytes, bytes]] = {
    "it is offered": (Security.OFFERED, b"EHLO c\r\n", OFFERING_EHLO),
    "it is offered where it is required": (Security.REQUIRED, b"EHLO c\r\n", OFFERING_EHLO),
    "it is not offered without a certificate": (Security.NONE, b"EHLO c\r\n", PLAIN_EHLO),
    "without a certificate it is not implemented": (
        Security.NONE,
        b"STARTTLS\r\nEHLO c\r\nSTARTTLS\r\nSTARTTLS x\r\n",
        replies.NOT_IMPLEMENTED + PLAIN_EHLO + replies.NOT_IMPLEMENTED * 2,
    ),
    "it comes after a greeting": (Security.OFFERED, b"STARTTLS\r\n", replies.BAD_SEQUENCE),
    "it takes no parameter": (
        Security.OFFERED,
        b"HELO c\r\nSTARTTLS now\r\nNOOP\r\n",
        HELLO + replies.BAD_ARGUMENT + replies.OK,
    ),
    "it takes no bad bytes": (Security.OFFERED, b"HELO c\r\nSTARTTLS \n\r\n", HELLO + replies.BAD_BYTES),
    "a verb must be whole": (Security.OFFERED, b"HELO c\r\nSTARTTLSX\r\n", HELLO + replies.UNKNOWN_COMMAND),
    "it does not come within a transaction": (
        Security.OFFERED,
        b"HELO c\r\nMAIL FROM:<a@x>\r\nSTARTTLS\r\nRCPT TO:<b@y>\r\nSTARTTLS\r\n",
        HELLO + replies.SENDER_OK + replies.BAD_SEQUENCE + replies.RECIPIENT_OK + replies.BAD_SEQUENCE,
    ),
    "it may be left alone": (Security.OFFERED, b"HELO c\r\n" + TRANSACTION, HELLO + ANSWERS),
    "what is in the same packet behind it is not looked at": (
        Security.OFFERED,
        b"HELO c\r\nSTARTTLS\r\n" + TRANSACTION + b"QUIT\r\n",
        HELLO + replies.READY_FOR_TLS,
    ),
    "where it is required nothing goes before": (
        Security.REQUIRED,
        b"MAIL FROM:<a@x>\r\nHELO c\r\nEHLO c\r\n"
        + TRANSACTION[:-3]
        + b"RSET\r\nVRFY x\r\nHELP\r\nAUTH PLAIN x\r\nNOOP\r\n",
        replies.TLS_REQUIRED * 2 + OFFERING_EHLO + replies.TLS_REQUIRED * 7 + replies.OK,
    ),
    "where it is required one may leave": (Security.REQUIRED, b"QUIT\r\n", replies.BYE),
    "where it is required errors are errors": (
        Security.REQUIRED,
        b"XYZZY\r\nMAIL \n\r\n",
        replies.UNKNOWN_COMMAND + replies.BAD_BYTES,
    ),
    "where it is required it works": (
        Security.REQUIRED,
        b"EHLO c\r\nSTARTTLS\r\n",
        OFFERING_EHLO + replies.READY_FOR_TLS,
    ),
    "TLS first looks at nothing in plain text": (Security.FIRST, b"EHLO c\r\n" + TRANSACTION, b""),
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_dialogue_fed_whole_and_byte_by_byte(name: str) -> None:
    security, wire, expected = DIALOGUES[name]
    server, receiver = make(security)
    assert feed(server, receiver, [wire]) == expected
    other, recorder = make(security)
    assert feed(other, recorder, [bytes([byte]) for byte in wire]) == expected
    assert recorder.events == receiver.events


@given(st.sampled_from(sorted(DIALOGUES)), st.lists(st.integers(0, 10000), max_size=6))
def test_a_dialogue_cut_at_random(name: str, places: list[int]) -> None:
    security, wire, expected = DIALOGUES[name]
    edges = [0, *sorted({place % (len(wire) + 1) for place in places}), len(wire)]
    server, receiver = make(security)
    assert feed(server, receiver, [wire[a:b] for a, b in itertools.pairwise(edges) if a < b]) == expected


@pytest.mark.parametrize(
    "rest", [b"", b"MAIL FROM:<evil@x>\r\n", b"EHLO evil\r\nMAIL FROM:<evil@x>\r\nRCPT TO:<b@", b"NOOP"]
)
def test_what_was_sent_behind_starttls_is_gone_when_tls_is_on(rest: bytes) -> None:
    server, receiver = make(Security.OFFERED)
    assert server.receive(b"EHLO c\r\nSTARTTLS\r\n" + rest) == OFFERING_EHLO + replies.READY_FOR_TLS
    assert server.state is ServerState.HANDSHAKE
    assert not server.has_more
    assert server.receive(b"RSET\r\nMAIL") == b""
    server.begin_secure()
    assert server.receive(b"") == b""
    assert server.receive(b"NOOP\r\n") == replies.OK
    assert receiver.events == [("reset",), ("greet", b"c", b"ESMTP"), ("reset",)]


def test_the_session_is_forgotten_when_tls_is_on() -> None:
    server, receiver = make(Security.OFFERED)
    server.receive(b"EHLO c\r\nSTARTTLS\r\n")
    assert receiver.events == [("reset",), ("greet", b"c", b"ESMTP"), ("reset",)]
    server.begin_secure()
    assert server.receive(b"MAIL FROM:<a@x>\r\n") == replies.BAD_SEQUENCE
    assert server.receive(b"EHLO c\r\n") == PLAIN_EHLO
    assert receiver.events[-1] == ("greet", b"c", b"ESMTPS")
    assert server.receive(TRANSACTION) == ANSWERS


def test_helo_under_tls_is_smtp() -> None:
    server, receiver = make(Security.FIRST)
    server.begin_secure()
    assert server.receive(b"HELO c\r\n") == HELLO
    assert receiver.events[-1] == ("greet", b"c", b"SMTP")


@pytest.mark.parametrize("security", [Security.OFFERED, Security.REQUIRED, Security.FIRST])
def test_under_tls_it_is_neither_offered_nor_taken(security: Security) -> None:
    server, _ = make(security)
    server.receive(b"EHLO c\r\nSTARTTLS\r\n")
    server.begin_secure()
    assert server.receive(b"STARTTLS\r\nEHLO c\r\nSTARTTLS\r\n") == replies.BAD_SEQUENCE + PLAIN_EHLO + replies.BAD_SEQUENCE
    assert server.receive(TRANSACTION) == ANSWERS


def test_an_endless_line_before_tls_does_not_spoil_the_first_one_under_it() -> None:
    server, _ = make(Security.OFFERED)
    server.receive(b"EHLO c\r\nSTARTTLS\r\n" + b"x" * 10000)
    server.begin_secure()
    assert server.receive(b"NOOP\r\n") == replies.OK


def test_errors_are_counted_on_under_tls() -> None:
    server, _ = make(Security.OFFERED, max_errors=2)
    server.receive(b"EHLO c\r\nXYZZY\r\nSTARTTLS\r\n")
    server.begin_secure()
    assert server.receive(b"XYZZY\r\n") == replies.UNKNOWN_COMMAND + replies.TOO_MANY_ERRORS
    assert server.state is ServerState.CLOSED


def test_who_does_nothing_but_ask_before_tls_is_sent_away() -> None:
    server, _ = make(Security.REQUIRED)
    out = b"".join(server.receive(b"MAIL FROM:<a@x>\r\n") for _ in range(200))
    assert out.endswith(replies.TLS_REQUIRED + replies.TOO_MANY_ERRORS)
    assert server.state is ServerState.CLOSED
