"""The state machine of a client session: states, events, and the table of transitions (RFC 5321 3.1, 3.8, RFC 3207,
RFC 4954); and the replies that a session awaits.

    event          from                                        to
    EHLO_SENT      GREETING HANDSHAKE                          EHLO
    HELO_SENT      GREETING EHLO                               HELO
    STARTTLS_SENT  EHLO                                        STARTTLS
    TLS_BEGUN      GREETING STARTTLS                           HANDSHAKE
    TLS_FIRST      HANDSHAKE                                   GREETING
    AUTH_BEGUN     EHLO HELO                                   AUTH
    OPENED         EHLO HELO STARTTLS AUTH                     OPEN
    STOP           OPEN STOPPING                               STOPPING
    END            GREETING EHLO HELO STARTTLS HANDSHAKE AUTH  UNUSABLE
    END            OPEN STOPPING                               ENDED

A session with TLS from the start goes to HANDSHAKE at once, and back to wait for the greeting.

*Rules*: `TRANSITIONS` alone says which state follows. `ClientEngine._move` applies it; nothing else sets the state.

*Not here*: the table of LMTP, where LHLO stands in the place of EHLO (`smtp.client.lmtp_state`), the phases of a transaction
(`smtp.client.transaction`), replies and commands (`smtp.client`).
"""

from __future__ import annotations

import enum


class ClientState(enum.Enum):
    """The states of a session."""

    GREETING = "the greeting is awaited"
    EHLO = "EHLO was sent"
    LHLO = "LHLO was sent"
    """Of LMTP alone."""
    HELO = "HELO was sent"
    STARTTLS = "STARTTLS was sent"
    HANDSHAKE = "TLS is negotiated by the owner"
    AUTH = "the owner shows credentials"
    OPEN = "EHLO, LHLO or HELO was accepted, and the credentials where there are any"
    STOPPING = "no transaction begins; the reply to a final dot is awaited"
    UNUSABLE = "the session ended before it was open"
    ENDED = "the session ended"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class ClientEvent(enum.Enum):
    """What changes the state of a session."""

    EHLO_SENT = "EHLO was sent"
    LHLO_SENT = "LHLO was sent"
    """Of LMTP alone."""
    HELO_SENT = "HELO was sent"
    STARTTLS_SENT = "STARTTLS was sent"
    TLS_BEGUN = "TLS begins: STARTTLS was accepted, or from the start"
    TLS_FIRST = "TLS is established, before the greeting"
    AUTH_BEGUN = "EHLO or HELO was accepted, and there are credentials to show"
    OPENED = "EHLO, LHLO or HELO or the credentials were accepted, or STARTTLS was refused and is not demanded"
    STOP = "the owner stops, or the server by LMTP, and a final dot has no reply yet"
    END = "QUIT, 421, a refused or lost connection, a useless reply, or the owner stops"

    __hash__ = object.__hash__  # as above


class Awaited(enum.Enum):
    """What an awaited reply answers."""

    OPENING = "greeting, EHLO, LHLO, HELO or STARTTLS"
    AUTH = "a line of the owner's authentication"
    RESET = "RSET"
    MAIL = "MAIL"
    RECIPIENT = "RCPT"
    DATA = "DATA"
    DOT = "the final dot of a transaction; by LMTP for one recipient"
    LONE_DOT = "the final dot of a message without an accepted recipient"


TRANSITIONS = {
    ClientState.GREETING: {
        ClientEvent.EHLO_SENT: ClientState.EHLO,
        ClientEvent.HELO_SENT: ClientState.HELO,
        ClientEvent.TLS_BEGUN: ClientState.HANDSHAKE,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.EHLO: {
        ClientEvent.HELO_SENT: ClientState.HELO,
        ClientEvent.STARTTLS_SENT: ClientState.STARTTLS,
        ClientEvent.AUTH_BEGUN: ClientState.AUTH,
        ClientEvent.OPENED: ClientState.OPEN,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.HELO: {
        ClientEvent.AUTH_BEGUN: ClientState.AUTH,
        ClientEvent.OPENED: ClientState.OPEN,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.STARTTLS: {
        ClientEvent.TLS_BEGUN: ClientState.HANDSHAKE,
        ClientEvent.OPENED: ClientState.OPEN,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.HANDSHAKE: {
        ClientEvent.EHLO_SENT: ClientState.EHLO,
        ClientEvent.TLS_FIRST: ClientState.GREETING,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.AUTH: {ClientEvent.OPENED: ClientState.OPEN, ClientEvent.END: ClientState.UNUSABLE},
    ClientState.OPEN: {ClientEvent.STOP: ClientState.STOPPING, ClientEvent.END: ClientState.ENDED},
    ClientState.STOPPING: {ClientEvent.STOP: ClientState.STOPPING, ClientEvent.END: ClientState.ENDED},
    ClientState.UNUSABLE: {},
    ClientState.ENDED: {},
}
"""State -> event -> next state. An event that a state does not have is a defect of this program (`IllegalTransition`)."""

OPENING_STATES = frozenset(
    {
        *(ClientState.GREETING, ClientState.EHLO, ClientState.HELO, ClientState.STARTTLS, ClientState.HANDSHAKE),
        *(ClientState.AUTH, ClientState.LHLO),
    }
)
TLS_STATES = frozenset({ClientState.STARTTLS, ClientState.HANDSHAKE})
"""Whoever is lost in these fails to start TLS."""
END_STATES = frozenset({ClientState.UNUSABLE, ClientState.ENDED})
