"""The terms of a session, and what a session asks of the listener that it belongs to.

*Rules*: a session keeps the terms that it began with. Time is counted in ticks of the listener.

*Not here*: the sessions of a listener (`submit.sessions`), one session (`submit.protocol`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from mailismus.smtp.server_limits import ServerLimits
from mailismus.submit.ending import Endings
from mailismus.submit.reception import Desk

if TYPE_CHECKING:  # a server without certificates shall not load OpenSSL
    from mailismus.net.tls import TlsServer

S_contra = TypeVar("S_contra", contravariant=True)

MAX_CONTENT_S = 6 * 3600.0
"""Seconds that one content may take: 50 MB at 2400 bytes a second, the slowest modem that anybody had."""
HANDSHAKE_S = 30.0
"""Seconds for a TLS handshake, where a command has not less."""


@attrs.frozen
class Terms:
    """What a session is begun with, and keeps. `relay_limits`: those of relay clients, who may name any number of unknown
    users."""

    limits: ServerLimits
    relay_limits: ServerLimits
    tls: TlsServer | None


class SessionOwner(Protocol[S_contra]):
    """The listener of a session: `submit.sessions.SessionFactory`."""

    desk: Desk
    terms: Terms
    greeting: bytes
    endings: Endings
    tick: int
    """Ticks since the start."""
    tick_s: float
    """Seconds of a tick."""
    timeout_ticks: int
    handshake_ticks: int
    content_ticks: int

    @property
    def stranger_ticks(self) -> int:
        """Ticks that a stranger may be silent now."""

    def enter(self, session: S_contra) -> None:
        """The session begins."""

    def leave(self, session: S_contra) -> None:
        """The session is over."""
