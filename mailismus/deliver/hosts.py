"""The hosts: what is known of each address and port, whatever next hop it was met under, and for how long (pure).

*Rules*
- A host with which no session could be had, and none stands, is *dead* for `Deaths.first_s`, twice as long each time it
  fails again, up to `most_s`; one that was reached and refused the session, for `first_s` each time. After that it gets one
  connection, which decides. A session that stands ends all that.
- One that fails while sessions with it stand takes no more connections for `PAUSE_S`: it is used through those it has.
- No more than `limit` dead hosts are remembered, those that died first go first; of the others nothing is remembered but
  while a connection or a next hop needs them. So memory is bounded, whatever the world's name servers say.

Times are monotonic seconds. *Not here*: which host is taken (`schedule`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from weakref import WeakValueDictionary

import attrs

from mailismus.mail.reply import Reply

FIRST_DEATH_S = 300.0
LONGEST_DEATH_S = 7200.0
FORGET_S = 7200.0
"""So long after its death a host that fails again fails for the first time."""
PAUSE_S = 30.0
MAX_DEAD = 10_000


@attrs.frozen
class Deaths:
    """How long a host is dead the first time, and at most."""

    first_s: float = FIRST_DEATH_S
    most_s: float = LONGEST_DEATH_S

    @classmethod
    def within(cls, retry_delays_s: Sequence[float]) -> Deaths:
        """The usual ones, but the first no longer than the shortest delay between attempts, and none longer than the
        longest: who retries every second means to find out within a second."""
        return cls(min(FIRST_DEATH_S, *retry_delays_s), min(LONGEST_DEATH_S, max(retry_delays_s)))


class HostTrouble(enum.Enum):
    """Why there is no session with a host."""

    NO_CONNECTION = "no connection"
    NO_SESSION = "no session"
    """It was reached, and refused the session or broke it."""


class Host:
    """One address and port."""

    __slots__ = (
        "__weakref__",
        "address",
        "connections",
        "dead_until",
        "died_at",
        "failures",
        "is_proven",
        "paused_until",
        "port",
        "reply",
        "sessions",
    )

    def __init__(self, address: str, port: int) -> None:
        self.address, self.port = address, port
        self.connections = 0
        """Connections, those being made and those that say QUIT included."""
        self.sessions = 0
        """Connections with a session that stands."""
        self.is_proven = False
        """The last connection became a session."""
        self.reply: Reply | None = None
        """Why it died."""
        self.forget()

    def forget(self) -> None:
        """Nothing is held against it."""
        self.paused_until = self.dead_until = 0.0
        self.died_at = -math.inf
        self.failures = 0
        """Times in a row that it could not be connected to."""

    def connection_opened(self) -> None:
        self.connections += 1

    def connection_closed(self) -> None:
        self.connections -= 1

    def session_stands(self) -> None:
        self.sessions += 1

    def session_ended(self) -> None:
        self.sessions -= 1

    def prove(self, *, is_proven: bool) -> None:
        """The last connection became a session, or did not."""
        self.is_proven = is_proven

    def pause(self, until: float) -> None:
        """It takes no more connections until then."""
        self.paused_until = until

    def forget_failures(self) -> None:
        """It fails for the first time, next."""
        self.failures = 0

    def die(self, now: float, until: float, reply: Reply) -> None:
        """It could not be connected to, for this reason, and is left alone until then."""
        self.failures += 1
        self.dead_until, self.died_at, self.reply = until, now, reply

    def is_dead(self, now: float) -> bool:
        """Whether no connection is made to it now."""
        return now < self.dead_until

    def is_paused(self, now: float) -> bool:
        """Whether it takes no more connections than it has now."""
        return self.sessions > 0 and now < self.paused_until

    @property
    def is_on_trial(self) -> bool:
        """Whether one connection is to show what it is like, before it gets others."""
        return self.connections > 0 and self.sessions == 0 and not self.is_proven


class Hosts:
    """All hosts that matter now."""

    def __init__(self, deaths: Deaths = Deaths(), limit: int = MAX_DEAD) -> None:
        self.deaths = deaths
        """For deaths to come."""
        self._limit = limit
        self._known: WeakValueDictionary[tuple[str, int], Host] = WeakValueDictionary()
        self._dead: dict[Host, None] = {}  # in the order of their deaths

    def use_deaths(self, deaths: Deaths) -> None:
        """Other durations, for deaths to come."""
        self.deaths = deaths

    def find(self, address: str, port: int) -> Host:
        """The host there: the same object for everybody."""
        host = self._known.get((address, port))
        if host is None:
            host = self._known[address, port] = Host(address, port)
        return host

    def stands(self, host: Host) -> None:
        """A session with it stands."""
        host.prove(is_proven=True)
        if host.died_at > -math.inf or host.paused_until:
            self._dead.pop(host, None)
            host.forget()

    def failed(self, host: Host, reply: Reply, trouble: HostTrouble, now: float) -> None:
        """No session could be had with it, for this reason."""
        host.prove(is_proven=False)
        if host.sessions:
            host.pause(now + PAUSE_S)
            return
        if host.is_dead(now):  # others were on their way when it died
            return
        if now - host.dead_until > FORGET_S or trouble is HostTrouble.NO_SESSION:
            host.forget_failures()
        death_s = min(self.deaths.most_s, self.deaths.first_s * 2.0 ** min(host.failures, 64))
        host.die(now, now + death_s, reply)
        self._dead.pop(host, None)
        self._dead[host] = None
        if len(self._dead) > self._limit:
            oldest = next(iter(self._dead))
            del self._dead[oldest]
            oldest.forget()

    def forget_deaths(self) -> None:
        """Every host is as good as new."""
        dead, self._dead = self._dead, {}
        for host in dead:
            host.forget()

    @property
    def remembered(self) -> int:
        """Hosts that have died and not shown themselves since."""
        return len(self._dead)
