"""What a server's session is bounded by, where it stands, and what it has to do with TLS: the words of `smtp.server`."""

from __future__ import annotations

import enum

import attrs

MAX_LINE = 2048
"""Bytes of a command line without its CRLF: 510 and room for extensions (RFC 5321 4.5.3.1.4)."""
MAX_REPLIES = 200
"""Replies given in one turn; then the caller sends them before more commands are looked at."""
MAX_WAITING = 2048
"""Bytes that may wait for an answer before the session is congested; what the last read brought comes to that."""
MAX_IDLE_COMMANDS = 100
"""Commands that move no mail since the last message that was taken; each further one counts as an error."""
MAX_REFUSED = 100
"""Refusals for good that cost a stranger nothing; each further one counts as an error. Who tries out the names of our users
learns so many in one connection, while an old list with many who are gone still gets its mail to the others."""
FORGIVEN = 10
"""Refusals that each message makes up for which was taken, so that a connection kept for many messages is not cut off."""
MAX_PUT_OFF = 10_000
"""Refusals for now before each further one counts as an error: no list of recipients is so long."""


class ServerState(enum.Enum):
    """Where a session stands."""

    FRESH = "no HELO or EHLO yet"
    GREETED = "no transaction"
    REFUSED = "MAIL was refused; RCPT and DATA that a pipelining client sent behind it are still to come"
    SENDER = "a transaction without recipient"
    RECIPIENTS = "a transaction with recipients"
    CONTENT = "content is coming"
    HANDSHAKE = "TLS is being agreed upon; nothing is looked at before it is on"
    CLOSED = "over"


class Security(enum.Enum):
    """What a session has to do with TLS."""

    NONE = "there is none"
    OFFERED = "STARTTLS is offered"
    REQUIRED = "STARTTLS is offered, and no mail is taken before"
    FIRST = "TLS begins before anything is said"
    ACTIVE = "TLS is on"


@attrs.frozen
class ServerLimits:
    """What a session may do; 0: no limit. `host`: the name we go by; `max_size_bytes`: of one content without dot-stuffing
    (RFC 1870); `security`: how it begins; `max_refused`: refusals for good before they count as errors."""

    host: bytes
    max_size_bytes: int
    max_errors: int
    security: Security = Security.NONE
    max_refused: int = MAX_REFUSED
