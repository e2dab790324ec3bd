"""The sessions of one listener: admission, counting, and what they share.

*Rules*: the number of sessions, in all and per client address, counts connections that were admitted and have not ended. A
rejected client costs no session. Time is counted in ticks.

*Not here*: which clients are admitted (`submit.admission`), one session (`submit.protocol`), sockets (`net.accept`).
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
from mailismus.smtp.server.limits import MAX_REFUSED, Security, ServerLimits
from mailismus.submit.admission import CROWDED_TIMEOUT_S, check_client, is_crowded
from mailismus.submit.ending import Ending, Endings
from mailismus.submit.policy import Policy, Standing
from mailismus.submit.protocol import ServerSession
from mailismus.submit.reception import Desk
from mailismus.submit.terms import HANDSHAKE_S, MAX_CONTENT_S, Terms

if TYPE_CHECKING:  # a server without certificates shall not load OpenSSL
    from mailismus.net.tls import TlsServer

LINE_S = 1.0
"""Seconds between two log lines about endings of one kind."""
NEVER = 1 << 62
"""A number of ticks that is never reached."""
MAX_KNOWN = 1000
"""Hosts whose standing is known at the same time: clients connect again and again."""


# Read for each client: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_FIRST, _STRANGER = Security.FIRST, Standing.STRANGER


class SessionFactory:
    """The sessions of one listener; its acceptors ask it for a session per client.

    `connections` (admitted or not), `endings`: for metrics. `is_crowded`: strangers have a short time-out.
    """

    log = Logger()

    def __init__(
        self,
        desk: Desk,
        tick_s: float,
        tls: TlsServer | None = None,
        security: Security = Security.NONE,
        open_files: Callable[[], int] = lambda: NEVER,
    ) -> None:
        """`tls`: if `security` is not NONE. `open_files`: returns the open-file limit of this process; called at each
        tick."""
        self.desk = desk
        self.greeting = replies.greeting(desk.host)
        self.endings = Endings(desk.maillog, 1)
        self.is_crowded = False
        self._adopt_limits(tick_s, tls, security)
        self.tick = self._crowded_since = 0
        self.sessions: set[ServerSession] = set()
        self.connections = 0
        self._open_of_peer: dict[str | bytes, int] = {}
        self._standings: dict[str, Standing] = {}
        """Of hosts that have connected, by `_standings_by`."""
        self._standings_by = desk.policy
        self._read_open_files = open_files
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
        """Ticks: the present time-out of strangers."""
        return self._crowded_ticks if self.is_crowded else self.timeout_ticks

    def adopt(self, policy: Policy, tick_s: float, tls: TlsServer | None, security: Security) -> None:
        """Take over other settings for new sessions and transactions. Present ones keep the old settings but the
        time-outs."""
        self.desk.policy = policy
        if tick_s != self.tick_s:
            for session in self.sessions:
                session.restart_time()
        self._adopt_limits(tick_s, tls, security)

    def admit(self, host: str, made: socket.SocketType) -> ServerSession | bytes:
        """Return a session for a new client, or the last bytes to send to it."""
        self.connections += 1
        desk = self.desk
        policy = desk.policy
        limits = policy.limits
        standing = self._standings.get(host)
        if standing is None or policy is not self._standings_by:
            standing = self._learn(host, policy)
        key: str | bytes = counted_as(host) if limits.maxpeerconnections else b""
        of_peer = self._open_of_peer.get(key, 0) if key else 0
        is_greeted = self.terms.limits.security is not _FIRST
        ending = check_client(
            limits, standing, len(self.sessions), of_peer, self._open_files - made.fileno() - 1, self._reserve
        )
        if ending is None and standing is _STRANGER and is_greeted and discard_early_input(made):
            ending = Ending.EARLY
        if ending is not None:
            self.endings.note(ending, host, b"")
            return ending.reply if is_greeted else b""
        if desk.is_closing:
            return replies.SHUTTING_DOWN if is_greeted else b""
        return ServerSession(self, host, standing, key)

    def _learn(self, host: str, policy: Policy) -> Standing:
        """Return the standing of a host by the present policy, and remember it."""
        if policy is not self._standings_by or len(self._standings) >= MAX_KNOWN:
            self._standings_by = policy
            self._standings.clear()
        standing = self._standings[host] = policy.standing_of(host)
        return standing

    def enter(self, session: ServerSession) -> None:
        """Count a session that begins."""
        self.sessions.add(session)
        key = session.counted_as
        if key:
            self._open_of_peer[key] = self._open_of_peer.get(key, 0) + 1

    def leave(self, session: ServerSession) -> None:
        """Remove a session that has ended from the counts."""
        self.sessions.discard(session)
        key = session.counted_as
        if key:
            left = self._open_of_peer[key] - 1
            if left:
                self._open_of_peer[key] = left
            else:
                del self._open_of_peer[key]

    def check_time(self) -> None:
        """Count a tick: each session checks its time-outs."""
        self.tick += 1
        self._update_crowding()
        for session in tuple(self.sessions):
            session.check_time()
        self.endings.tick()

    def _update_crowding(self) -> None:
        """Read the open-file limit again, and decide whether the listener is crowded."""
        open_files = self._read_open_files()
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
