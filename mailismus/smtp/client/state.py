"""The state machine of a client session: states, events, and the table of transitions (RFC 5321 3.1, 3.8); and the replies
that a session awaits.

    event      from                to
    EHLO_SENT  GREETING            EHLO
    HELO_SENT  GREETING EHLO       HELO
    OPENED     EHLO HELO           OPEN
    STOP       OPEN STOPPING       STOPPING
    END        GREETING EHLO HELO  UNUSABLE
    END        OPEN STOPPING       ENDED

*Rules*: `TRANSITIONS` alone says which state follows. `ClientEngine._move` applies it; nothing else sets the state.

*Not here*: the phases of a transaction (`smtp.client.transaction`), replies and commands (`smtp.client`).
"""

from __future__ import annotations

import enum


class ClientState(enum.Enum):
    """The states of a session."""

    GREETING = "the greeting is awaited"
    EHLO = "EHLO was sent"
    HELO = "HELO was sent"
    OPEN = "EHLO or HELO was accepted"
    STOPPING = "no transaction begins; the reply to a final dot is awaited"
    UNUSABLE = "the session ended before it was open"
    ENDED = "the session ended"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class ClientEvent(enum.Enum):
    """What changes the state of a session."""

    EHLO_SENT = "EHLO was sent"
    HELO_SENT = "HELO was sent"
    OPENED = "EHLO or HELO was accepted"
    STOP = "the owner stops, and a final dot has no reply yet"
    END = "QUIT, 421, a refused or lost connection, a useless reply, or the owner stops"

    __hash__ = object.__hash__  # as above


class Awaited(enum.Enum):
    """What an awaited reply answers."""

    OPENING = "greeting, EHLO or HELO"
    RESET = "RSET"
    MAIL = "MAIL"
    RECIPIENT = "RCPT"
    DATA = "DATA"
    DOT = "the final dot of a transaction"
    LONE_DOT = "the final dot of a message without an accepted recipient"


TRANSITIONS = {
    ClientState.GREETING: {
        ClientEvent.EHLO_SENT: ClientState.EHLO,
        ClientEvent.HELO_SENT: ClientState.HELO,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.EHLO: {
        ClientEvent.HELO_SENT: ClientState.HELO,
        ClientEvent.OPENED: ClientState.OPEN,
        ClientEvent.END: ClientState.UNUSABLE,
    },
    ClientState.HELO: {ClientEvent.OPENED: ClientState.OPEN, ClientEvent.END: ClientState.UNUSABLE},
    ClientState.OPEN: {ClientEvent.STOP: ClientState.STOPPING, ClientEvent.END: ClientState.ENDED},
    ClientState.STOPPING: {ClientEvent.STOP: ClientState.STOPPING, ClientEvent.END: ClientState.ENDED},
    ClientState.UNUSABLE: {},
    ClientState.ENDED: {},
}
"""State -> event -> next state. An event that a state does not have is a defect of this program (`IllegalTransition`)."""

OPENING_STATES = frozenset({ClientState.GREETING, ClientState.EHLO, ClientState.HELO})
END_STATES = frozenset({ClientState.UNUSABLE, ClientState.ENDED})
