"""The state machine of a server session: states, events, and the table of transitions (RFC 5321 4.1.4, RFC 3207 4.2).

    event              from                                                       to
    HELLO              FRESH GREETED REFUSED SENDER RECIPIENTS                    GREETED
    MAIL_ACCEPTED      GREETED REFUSED                                            SENDER
    MAIL_REFUSED       GREETED REFUSED                                            REFUSED
    RCPT_ACCEPTED      SENDER                                                     RECIPIENTS
    DATA_ACCEPTED      RECIPIENTS                                                 CONTENT
    CONTENT_ENDED      CONTENT                                                    GREETED
    RESET              FRESH                                                      FRESH
    RESET              GREETED REFUSED SENDER RECIPIENTS                          GREETED
    STARTTLS_ACCEPTED  GREETED REFUSED                                            HANDSHAKE
    TLS_COMPLETED      HANDSHAKE                                                  FRESH
    CLOSE              FRESH GREETED REFUSED SENDER RECIPIENTS CONTENT HANDSHAKE  CLOSED

*Rules*: `TRANSITIONS` alone says which state follows. `ServerEngine._move` applies it; nothing else sets the state.

*Not here*: what each command does in a state (`smtp.server.commands`), parsing, replies (`smtp.server`). An open question to
the receiver is not a state: any of the states before CLOSED may wait for an answer.
"""

from __future__ import annotations

import enum


class ServerState(enum.Enum):
    """The states of a session."""

    FRESH = "no HELO or EHLO yet"
    GREETED = "no transaction"
    REFUSED = "MAIL was refused; RCPT and DATA that a pipelining client sent behind it may follow"
    SENDER = "a transaction without a recipient"
    RECIPIENTS = "a transaction with recipients"
    CONTENT = "the content of a message is being received"
    HANDSHAKE = "the TLS handshake; no byte is parsed"
    CLOSED = "the session has ended"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class ServerEvent(enum.Enum):
    """What changes the state of a session."""

    HELLO = "HELO or EHLO was accepted"
    MAIL_ACCEPTED = "MAIL was accepted"
    MAIL_REFUSED = "MAIL was refused"
    RCPT_ACCEPTED = "the first RCPT of a transaction was accepted; a further one changes nothing"
    DATA_ACCEPTED = "DATA was answered with 354"
    CONTENT_ENDED = "CRLF.CRLF was received"
    RESET = "RSET"
    STARTTLS_ACCEPTED = "STARTTLS was answered with 220"
    TLS_COMPLETED = "the TLS handshake is complete"
    CLOSE = "QUIT, 421, too many errors, or the caller ends the session"

    __hash__ = object.__hash__  # as above


def _make_table() -> dict[ServerState, dict[ServerEvent, ServerState]]:
    state, event = ServerState, ServerEvent
    outside = {
        event.HELLO: state.GREETED,
        event.MAIL_ACCEPTED: state.SENDER,
        event.MAIL_REFUSED: state.REFUSED,
        event.RESET: state.GREETED,
        event.STARTTLS_ACCEPTED: state.HANDSHAKE,
        event.CLOSE: state.CLOSED,
    }
    inside = {event.HELLO: state.GREETED, event.RESET: state.GREETED, event.CLOSE: state.CLOSED}
    return {
        state.FRESH: {event.HELLO: state.GREETED, event.RESET: state.FRESH, event.CLOSE: state.CLOSED},
        state.GREETED: outside,
        state.REFUSED: outside,
        state.SENDER: {**inside, event.RCPT_ACCEPTED: state.RECIPIENTS},
        state.RECIPIENTS: {**inside, event.DATA_ACCEPTED: state.CONTENT},
        state.CONTENT: {event.CONTENT_ENDED: state.GREETED, event.CLOSE: state.CLOSED},
        state.HANDSHAKE: {event.TLS_COMPLETED: state.FRESH, event.CLOSE: state.CLOSED},
        state.CLOSED: {},
    }


TRANSITIONS = _make_table()
"""State -> event -> next state. An event that a state does not have is a defect of this program (`IllegalTransition`)."""
