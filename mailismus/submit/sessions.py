"""The sessions of one listener: who gets in, how they are counted, what they share.

*Rules*: the number of sessions, and of each client address, is that of connections which were let in and are not yet over;
who is turned away costs no session. Time goes in ticks.

*Not here*: who may connect (`submit.admission`), one session (`submit.protocol`), sockets (`net.accept`).
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from twisted.logger import Logger

from mailismus.config.values.open_files import reserve_of
from mailismus.net.accept import discard_early_input
from mailismus.net.peer import counted_as
from mailismus.smtp import replies
from mailismus.smtp.server_limits import MAX_REFUSED, Security, ServerLimits
from mailismus.submit.admission import CROWDED_TIMEOUT_S, check_client, is_crowded
from mailismus.submit.ending import Ending, Endings
from mailismus.submit.policy import Policy, Standing
from mailismus.submit.protocol import ServerSession
from mailismus.submit.reception import Desk
from mailismus.submit.terms import HANDSHAKE_S, MAX_CONTENT_S, Terms

if TYPE_CHECKING:  # a server without certificates shall not load OpenSSL
    from mailismus.net.tls import TlsServer

LINE_S = 1.0
"""Seconds between two lines in the log about endings of one kind."""
NEVER = 1 << 62
"""Ticks that do not pass."""


class SessionFactory:
    """The sessions of one listener: the gate of its acceptors. `connections` (let in or not), `endings`: for metrics.
    `is_crowded`: strangers have little time."""

    log = Logger()

    def __init__(
        self,
        desk: Desk,
        tick_s: float,
        tls: TlsServer | None = None,
        security: Security = Security.NONE,
        open_files: Callable[[], int] = lambda: NEVER,
    ) -> None:
        """`tls` where `security` is not NONE. `open_files`: how many this process may have, asked at each tick."""
        self.desk = desk
        self.greeting = replies.greeting(desk.host)
        self.endings = Endings(desk.maillog, 1)
        self.is_crowded = False
        self._adopt_limits(tick_s, tls, security)
        self.tick = self._crowded_since = 0
        self.sessions: set[ServerSession] = set()
        self.connections = 0
        self._open_of_peer: dict[str | bytes, int] = {}
        self._ask_open_files = open_files
        self._open_files = open_files()
        self._reserve = reserve_of(self._open_files)

    def _adopt_limits(self, tick_s: float, tls: TlsServer | None, security: Security) -> None:
        limits = self.desk.policy.limits
        self.tick_s = tick_s
        server_limits = ServerLimits(self.desk.host, limits.maxmsgsize, limits.maxbadreqs, security, MAX_REFUSED)
        self.terms = Terms(server_limits, attrs.evolve(server_limits, max_refused=0), tls)
        self.timeout_ticks = math.ceil(limits.timeout_s / tick_s) if limits.timeout_s > 0 else NEVER
        self.handshake_ticks = math.ceil(HANDSHAKE_S / tick_s)
        self.content_ticks = math.ceil(MAX_CONTENT_S / tick_s) if limits.timeout_s > 0 else NEVER
        self._crowded_ticks = min(self.timeout_ticks, math.ceil(CROWDED_TIMEOUT_S / tick_s))
        self.endings.ticks_per_line = math.ceil(LINE_S / tick_s)

    @property
    def stranger_ticks(self) -> int:
        """How long strangers may be silent now."""
        return self._crowded_ticks if self.is_crowded else self.timeout_ticks

    def adopt(self, policy: Policy, tick_s: float, tls: TlsServer | None, security: Security) -> None:
        """Other settings: sessions and transactions go by them from now on, those under way by the old, except time-outs."""
        self.desk.policy = policy
        if tick_s != self.tick_s:
            for session in self.sessions:
                session.restart_time()
        self._adopt_limits(tick_s, tls, security)

    def admit(self, host: str, made: socket.socket) -> ServerSession | bytes:
        """A session for a new client, or the last words to it."""
        self.connections += 1
        desk = self.desk
        policy = desk.policy
        limits, standing = policy.limits, policy.standing_of(host)
        key: str | bytes = counted_as(host) if limits.maxpeerconnections else b""
        of_peer = self._open_of_peer.get(key, 0) if key else 0
        is_greeted = self.terms.limits.security is not Security.FIRST
        ending = check_client(
            limits, standing, len(self.sessions), of_peer, self._open_files - made.fileno() - 1, self._reserve
        )
        if ending is None and standing is Standing.STRANGER and is_greeted and discard_early_input(made):
            ending = Ending.EARLY
        if ending is not None:
            self.endings.note(ending, host, b"")
            return ending.reply if is_greeted else b""
        if desk.is_closing:
            return replies.SHUTTING_DOWN if is_greeted else b""
        return ServerSession(self, host, standing, key)

    def enter(self, session: ServerSession) -> None:
        """The session begins."""
        self.sessions.add(session)
        key = session.counted_as
        if key:
            self._open_of_peer[key] = self._open_of_peer.get(key, 0) + 1

    def leave(self, session: ServerSession) -> None:
        """The session is over."""
        self.sessions.discard(session)
        key = session.counted_as
        if key:
            left = self._open_of_peer[key] - 1
            if left:
                self._open_of_peer[key] = left
            else:
                del self._open_of_peer[key]

    def check_time(self) -> None:
        """A tick: each session looks how long it has waited."""
        self.tick += 1
        self._look_around()
        for session in tuple(self.sessions):
            session.check_time()
        self.endings.tick()

    def _look_around(self) -> None:
        """How many files and connections there are may have changed."""
        open_files = self._ask_open_files()
        if open_files != self._open_files:
            self._open_files, self._reserve = open_files, reserve_of(open_files)
        was_crowded = self.is_crowded
        if was_crowded and self.tick - self._crowded_since < self._crowded_ticks:
            return
        self.is_crowded = is_crowded(self.desk.policy.limits, len(self.sessions), was_crowded)
        if self.is_crowded is not was_crowded:
            self._crowded_since = self.tick
            self.log.warn(
                "{state}: {number} connections",
                state="Crowded, strangers have less time" if self.is_crowded else "No longer crowded",
                number=len(self.sessions),
            )
