"""The server engine's replies to every short sequence of commands, from every state: the wire does not change unnoticed.

A digest stands for the replies, the calls of the receiver, and the state after each command. Where a change is meant,
`python -m tests.smtp.test_server_sequences` prints the new digests.
"""

from __future__ import annotations

import hashlib
import itertools

import pytest

from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import Security, ServerLimits
from mailismus.smtp.server.state import ServerState
from tests.smtp.test_server_dialogues import Recorder

EHLO, MAIL, RCPT, DATA, BODY = b"EHLO c\r\n", b"MAIL FROM:<a@x>\r\n", b"RCPT TO:<b@y>\r\n", b"DATA\r\n", b"..x\r\n.\r\n"
STARTTLS, TLS_ON = b"STARTTLS\r\n", b"<TLS is on>"
REFUSED_MAIL, REFUSED_RCPT = b"MAIL FROM:<no@x>\r\n", b"RCPT TO:<no@y>\r\n"
FEW = (EHLO, MAIL, REFUSED_MAIL, RCPT, REFUSED_RCPT, DATA, BODY, b"RSET\r\n", STARTTLS)
ALL = (
    *FEW,
    *(b"HELO c\r\n", b"HELO\r\n", b"MAIL FROM:<a@@x>\r\n", b"MAIL FROM:<last@x>\r\n", b"RCPT TO:<b\r\n", b"DATA now\r\n"),
    *(
        b"RSET now\r\n",
        b"NOOP\r\n",
        b"VRFY joe\r\n",
        b"HELP\r\n",
        b"AUTH PLAIN x\r\n",
        b"XYZZY\r\n",
        b"NOOP\n\r\n",
        b"QUIT\r\n",
    ),
)
STATES = {
    ServerState.FRESH: (),
    ServerState.GREETED: (EHLO,),
    ServerState.REFUSED: (EHLO, REFUSED_MAIL),
    ServerState.SENDER: (EHLO, MAIL),
    ServerState.RECIPIENTS: (EHLO, MAIL, RCPT),
    ServerState.CONTENT: (EHLO, MAIL, RCPT, DATA),
    ServerState.HANDSHAKE: (EHLO, STARTTLS),
    ServerState.CLOSED: (b"QUIT\r\n",),
}
REFUSALS = {b"no@x": replies.TOO_LARGE, b"no@y": replies.UNKNOWN_USER, b"last@x": replies.SHUTTING_DOWN}


def play(sequence: tuple[bytes, ...], security: Security, is_slow: bool) -> tuple[str, ServerState]:
    """What came of each command; the third error ends the session."""
    receiver = Recorder(is_slow, refuses=REFUSALS)
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 3, security), receiver)
    heard: list[object] = []
    for command in sequence:
        out = b""
        if command != TLS_ON:
            out = server.receive(command)
        elif server.state is ServerState.HANDSHAKE:
            server.begin_secure()
        while receiver.pending or server.has_more:
            out += server.answer(receiver.pending.pop()) if receiver.pending else server.receive(b"")
        heard += [out, server.state.name, server.last_state.name if server.state is ServerState.CLOSED else ""]
    return repr((heard, receiver.events, server.contents, server.wire_bytes)), server.state


def digest_of(before: tuple[bytes, ...], commands: tuple[bytes, ...], length: int, security: Security, is_slow: bool) -> str:
    digest = hashlib.sha256()
    for count in range(1, length + 1):
        for sequence in itertools.product(commands, repeat=count):
            digest.update(play(before + sequence, security, is_slow)[0].encode())
    return digest.hexdigest()[:16]


SECURITIES = (Security.NONE, Security.OFFERED, Security.REQUIRED, Security.FIRST)
FROM_THE_START: dict[Security, str] = {
    Security.NONE: "67f1c0a085a2a04f",
    Security.OFFERED: "fdc952aaa3e7dc58",
    Security.REQUIRED: "c7742a6c00589251",
    Security.FIRST: "47153181479efb39",
}
FROM_EACH_STATE: dict[ServerState, str] = {
    ServerState.FRESH: "7ebb7a87ed8343f2",
    ServerState.GREETED: "a8f3ff581326b49a",
    ServerState.REFUSED: "d7a5f7e38a5ed064",
    ServerState.SENDER: "0295e3d7db3b53de",
    ServerState.RECIPIENTS: "98e79485c8f2207f",
    ServerState.CONTENT: "20bc82b0befcfcba",
    ServerState.HANDSHAKE: "25ff42c1568f5247",
    ServerState.CLOSED: "854d2111a9ce0d1e",
}


def digest_from_the_start(security: Security, is_slow: bool) -> str:
    return digest_of((), (*FEW, TLS_ON) if security is not Security.NONE else FEW, 4, security, is_slow)


def digest_from(state: ServerState, is_slow: bool) -> str:
    return digest_of(STATES[state], (*ALL, TLS_ON), 2, Security.OFFERED, is_slow)


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("security", SECURITIES)
def test_four_commands_from_the_start_have_the_replies_that_they_had(security: Security, is_slow: bool) -> None:
    assert digest_from_the_start(security, is_slow) == FROM_THE_START[security]


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("state", ServerState)
def test_two_commands_from_each_state_have_the_replies_that_they_had(state: ServerState, is_slow: bool) -> None:
    before = STATES[state]
    assert not before or play(before, Security.OFFERED, is_slow)[1] is state
    assert digest_from(state, is_slow) == FROM_EACH_STATE[state]


if __name__ == "__main__":
    for security in SECURITIES:
        print(f'    {security}: "{digest_from_the_start(security, False)}",')
    for state in ServerState:
        print(f'    {state}: "{digest_from(state, False)}",')
