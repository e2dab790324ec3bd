"""The terms of a session, and the interface of the listener that it belongs to.

*Rules*: a session keeps the terms that it began with. Time is counted in ticks of the listener.

*Not here*: the sessions of a listener (`submit.sessions`), one session (`submit.protocol`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from mailismus.smtp.server.limits import ServerLimits
from mailismus.submit.ending import Endings
from mailismus.submit.reception import Desk

if TYPE_CHECKING:  # a server without certificates shall not load OpenSSL
    from mailismus.net.tls import TlsServer

S_contra = TypeVar("S_contra", contravariant=True)

MAX_CONTENT_S = 6 * 3600.0
"""Seconds that one content may take: 50 MB at 2400 bytes per second, the slowest modem."""
HANDSHAKE_S = 30.0
"""Seconds for a TLS handshake, unless the time-out of a command is shorter."""


@attrs.frozen
class Terms:
    """What a session begins with, and keeps. `relay_limits`: limits of relay clients, which may name any number of unknown
    users."""

    limits: ServerLimits
    relay_limits: ServerLimits
    tls: TlsServer | None


class SessionOwner(Protocol[S_contra]):
    """The listener of a session, implemented by `submit.sessions.SessionFactory`."""

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
        """Ticks: the present time-out of strangers."""

    def enter(self, session: S_contra) -> None:
        """Count a session that begins."""

    def leave(self, session: S_contra) -> None:
        """Remove a session that has ended from the counts."""
