"""An endpoint (address and port, or the path of a Unix socket and 0): what is known of it and limits all connections to it,
whatever their profile. Pure.

*Rules*
- It is *dead* from a failure until its time is over, then due for a *trial*. A session that stands clears all failures.
- When its last connection is closed, it is remembered when that one had been made.

*Not here*: the connections themselves, and failures of one profile alone (`host`). `destdb` alone sets what is remembered.
"""

from __future__ import annotations

import math

from mailismus.deliver.knowledge.host_records import HostRecord
from mailismus.deliver.limits.parts import ConnectionParts
from mailismus.deliver.limits.window import Window
from mailismus.deliver.schedule.limits import NO_LIMIT
from mailismus.mail.reply import Reply
from mailismus.observe.habits import WindowState
from mailismus.queue.limits import ILimits


class Endpoint:
    """One address and port."""

    __slots__ = (
        *("__weakref__", "address", "closed_at", "connections", "dead_until", "died_at", "failures", "made_at", "parts"),
        *("port", "reply", "standing", "trial", "window"),
    )

    def __init__(self, address: str, port: int) -> None:
        self.address, self.port = address, port
        self.parts: ConnectionParts | None = None
        """Its part of each limit; None: all of it."""
        self.window: Window | None = None
        """How many connections it may have, by what it said up to EHLO; None: it never refused one."""
        self.connections = 0
        """Connections, those being made and those in QUIT included."""
        self.standing = 0
        """Connections with a session."""
        self.trial: object = None
        """The connection on trial."""
        self.made_at = -math.inf
        """When the connection that was closed last had been made; minus infinity: not remembered."""
        self.closed_at = -math.inf
        self.failures = 0
        """Consecutive failures to get a session."""
        self.dead_until = 0.0
        self.died_at = -math.inf
        self.reply: Reply | None = None
        """The reply of its last death."""

    def is_dead(self, now: float) -> bool:
        """Whether it is too early for a trial."""
        return now < self.dead_until

    # ------------------------------------------------------------------ connections

    def connected(self) -> None:
        """Count a connection that is being made."""
        self.connections += 1

    def closed(self) -> None:
        """Stop counting a closed connection."""
        self.connections -= 1

    def stands(self) -> None:
        """Count a session that stands."""
        self.standing += 1

    def stands_no_more(self) -> None:
        """Stop counting a session that leaves."""
        self.standing -= 1

    def try_with(self, connection: object) -> None:
        """Begin a trial with this connection; None: the trial is over."""
        self.trial = connection

    # ------------------------------------------------------------------ limits

    def share(self, limits: ILimits) -> None:
        """Have only a part of each limit from now on: these hold over all servers. A Unix socket is no other server's."""
        if self.port:
            self.parts = ConnectionParts(limits, f"{self.address} {self.port}", self)

    def adopt_window(self, state: WindowState, now: float) -> None:
        """Begin with the window of another process."""
        self.window = Window(None)
        self.window.restore(state, now)

    def refuse(self, now: float, standing: int, reply: Reply) -> None:
        """Note that it refused a connection or a session while so many others stood."""
        if self.window is None:
            self.window = Window(None, size=standing)
        self.window.note_refused(now, standing, reply)

    def cut(self, now: float, made_at: float, standing: int, reply: Reply) -> None:
        """Note that a connection made then timed out or was cut off before EHLO, while so many others stood."""
        if self.window is None:
            self.window = Window(None, size=standing)
        self.window.note_cut(now, made_at, reply, standing)

    def note_delivered(self) -> bool:
        """Note that it accepted a message. Whether it may have more connections now."""
        return self.window is not None and self.window.note_delivered(self.standing)

    @property
    def has_surplus(self) -> bool:
        """Whether it has more connections than it may have since its window was cut, or other servers have some."""
        window, parts = self.window, self.parts
        if window is not None and self.connections > window.size:
            return True
        return parts is not None and parts.surplus(self.connections) > 0

    def may_have_more(self, most: int, now: float, scope: bytes = b"") -> bool:
        """Whether it may have another connection, of at most so many. `scope`: as in `DestinationLimits`."""
        count, window, parts = self.connections, self.window, self.parts
        if count >= most or not (window is None or window.allows(count, now)):
            return False
        return parts is None or parts.allow(count, most, scope, NO_LIMIT)

    # ------------------------------------------------------------------ what is remembered

    def remember(self, made_at: float, closed_at: float) -> None:
        """Remember when its last connection had been made and was closed; minus infinity: forget it."""
        self.made_at, self.closed_at = made_at, closed_at

    def die(self, failures: int, now: float, until: float, reply: Reply) -> None:
        """Note that no session with it succeeded, for this reason: it is dead until then."""
        self.failures, self.died_at, self.dead_until, self.reply = failures, now, until, reply

    def adopt(self, died_at: float, until: float, failures: int, reply: Reply | None) -> None:
        """Take over a death that another copy noted."""
        self.died_at, self.dead_until, self.failures, self.reply = died_at, until, failures, reply

    def live(self) -> None:
        """Clear its failures."""
        self.failures, self.died_at, self.dead_until = 0, -math.inf, 0.0

    def record(self, offset_s: float) -> HostRecord:
        """What is known of it. `offset_s`: UTC minus monotonic seconds."""
        made_at = round(self.made_at + offset_s, 3) if self.made_at > -math.inf else 0.0
        if not self.failures:
            return HostRecord(self.address, self.port, made_at=made_at)
        noted_at, retry_at = round(self.died_at + offset_s, 3), round(self.dead_until + offset_s, 3)
        return HostRecord(self.address, self.port, noted_at, retry_at, self.failures, self.reply, made_at)
