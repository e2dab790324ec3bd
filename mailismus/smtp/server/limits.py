"""Limits of one session of the server engine, and its kind of TLS."""

from __future__ import annotations

import enum

import attrs

MAX_LINE = 2048
"""Bytes of a command line without its CRLF: 510 and room for extensions (RFC 5321 4.5.3.1.4)."""
MAX_REPLIES = 200
"""Replies per turn. The caller sends them before the engine parses more commands."""
MAX_WAITING = 2048
"""Bytes that may wait behind an open question before the session is congested. The last read may exceed it."""
MAX_IDLE_COMMANDS = 100
"""Commands without mail since the last accepted message. Each further one counts as an error."""
MAX_REFUSED = 100
"""Permanent refusals per session (strangers only). Each further one counts as an error. A client that guesses user names
learns this many in one connection, and an old mailing list with many unknown users still reaches the others."""
FORGIVEN = 10
"""Permanent refusals that one accepted message cancels, so that a connection with many messages is not cut off."""
MAX_PUT_OFF = 10_000
"""Transient refusals per session. Each further one counts as an error. No recipient list is this long."""


class Security(enum.Enum):
    """The state of TLS in a session."""

    NONE = "TLS is not available"
    OFFERED = "STARTTLS is offered"
    REQUIRED = "STARTTLS is offered, and mail is refused before it"
    FIRST = "TLS begins before the greeting"
    ACTIVE = "TLS is active"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


@attrs.frozen
class ServerLimits:
    """Limits of a session; 0: no limit.

    `host`: our host name. `max_size_bytes`: of one message without dot-stuffing (RFC 1870). `security`: how the session
    begins. `max_refused`: permanent refusals before each further one counts as an error.
    """

    host: bytes
    max_size_bytes: int
    max_errors: int
    security: Security = Security.NONE
    max_refused: int = MAX_REFUSED
