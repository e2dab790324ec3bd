"""TLS of a client session: whether a session wants it, and how it can fail (RFC 3207, RFC 8314).

*Not here*: TLS itself (`net.tls_client`), what a failure means for the mail (`deliver.security`).
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class TlsUse(enum.Enum):
    """Whether a session uses TLS."""

    NEVER = "never"
    IF_OFFERED = "if the host offers it"
    DEMANDED = "always, by STARTTLS"
    FROM_START = "always, from the start of the connection"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class TlsFault(enum.Enum):
    """How TLS can fail."""

    NOT_OFFERED = "not offered"
    REFUSED = "refused"
    HANDSHAKE = "handshake"
    UNTRUSTED = "untrusted"
    WRONG_NAME = "wrong name"
    INJECTED = "injected"
    """Bytes came behind the reply to STARTTLS, before TLS: somebody may have put them there."""

    __hash__ = object.__hash__  # as above


class TlsFailure(NamedTuple):
    """Why a session has no TLS, or none that is good enough. `words`: the host's reply, or the reason; printable ASCII."""

    fault: TlsFault
    words: bytes = b""
