"""A host (address and port) for one profile, and its connections. Pure.

*Rules*
- A connection is *active* while it has jobs or is being made, else *idle*. The host is *closed* if it has none, and it is
  remembered when the one closed last had been made; *unused* if nothing is known of it.
- A host is *dead* from a failure until its time is over, then due for a *trial*: one connection with one job, which is not
  active before its session stands. A session that stands clears all failures.
- Profiles share no connection. They share the `endpoint`: its death, its limits, and its number of connections.
- A connection that *missed* what the profile demands (TLS) is a failure of this host alone, not of the endpoint: for a time
  it gets no more connections, and is dead if no session stands.

*Not here*: which connections have room, or the fewest jobs (`sorted_connections`).
"""

from __future__ import annotations

import math
from collections import deque
from typing import Protocol

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.sorted_connections import SortedConnections
from mailismus.deliver.security.profile import Profile
from mailismus.mail.reply import Reply


class Carrier(Protocol):
    """The session over a connection, as the schedule uses it."""

    def begin(self) -> None:
        """Ask for the next job and begin it: the connection was idle."""

    def quit(self) -> None:
        """End it: it is idle."""


class Connection:
    """One connection: its jobs, as the schedule sees them."""

    __slots__ = (
        *("begun", "carrier", "has_enough", "host", "idle_number", "is_idle", "is_leaving", "is_listed", "is_standing"),
        *("jobs", "made_at", "mx_set", "number", "place", "queue", "sender"),
    )

    def __init__(self, number: int, host: Host, mx_set: MxSet, made_at: float) -> None:
        self.number = number
        """Newer connections have higher ones."""
        self.host = host
        self.mx_set = mx_set
        """The set for which it was made, whose window counts it."""
        self.made_at = made_at
        """Monotonic seconds."""
        self.carrier: Carrier | None = None
        self.queue: deque[Job] = deque()
        """Jobs that have not begun, in order."""
        self.jobs = 0
        """Jobs begun or queued."""
        self.place = 0
        """The number of jobs by which its host has sorted it among the crowded ones; 0: it is not
        there."""
        self.begun = 0
        """Transactions begun."""
        self.is_standing = False
        """Whether greeting and EHLO were accepted."""
        self.is_listed = False
        """Whether it gets jobs: not on trial, not leaving."""
        self.is_idle = False
        self.idle_number = 0
        """Connections that became idle later have higher ones."""
        self.is_leaving = False
        """Whether it takes no more jobs."""
        self.has_enough = False
        """Whether MAIL was answered over it with a sign of too much: it begins no other transaction."""
        self.sender: bytes | None = None
        """The sender of the small message for which it was made, or used again; None: it was another one, or it is idle."""

    def charge(self, sender: bytes | None) -> None:
        """Note for whose small message it is used."""
        self.sender = sender

    def set_listed(self, *, is_listed: bool) -> None:
        """Note whether it gets jobs."""
        self.is_listed = is_listed

    def rest(self, idle_number: int) -> None:
        """Become idle."""
        self.is_idle, self.idle_number = True, idle_number

    def wake(self) -> None:
        """Become active."""
        self.is_idle = False

    def leave(self) -> None:
        """Take no more jobs."""
        self.is_leaving = True

    def stand(self) -> None:
        """Note that greeting and EHLO were accepted."""
        self.is_standing = True

    def refuse_more(self) -> None:
        """Begin no other transaction: MAIL was answered with a sign of too much."""
        self.has_enough = True

    def carry(self, carrier: Carrier) -> None:
        """Set the session over it."""
        self.carrier = carrier


class Host(SortedConnections["Connection"]):
    """One address and port, for one profile. `destdb` alone sets what is remembered of it."""

    __slots__ = (
        *("__weakref__", "_trial", "address", "connections", "endpoint", "met_tls", "missed", "missed_at", "missed_until"),
        *("misses", "port", "profile", "standing"),
    )

    def __init__(self, endpoint: Endpoint, profile: Profile, limits: ScheduleLimits) -> None:
        self.endpoint, self.profile = endpoint, profile
        self.address, self.port = endpoint.address, endpoint.port
        SortedConnections.__init__(self, limits)
        self.connections = 0
        """Connections of this profile, those being made and those in QUIT included."""
        self.standing = 0
        """Connections with a session."""
        self._trial: Connection | None = None
        self.misses = 0
        """Consecutive connections that missed what the profile demands."""
        self.missed_until = 0.0
        self.missed_at = -math.inf
        self.missed: Reply | None = None
        """What was missed last."""
        self.met_tls = False
        """Whether that was not TLS."""

    # ------------------------------------------------------------------ what it is

    @property
    def has_leaving(self) -> bool:
        """Whether a connection of it takes no more jobs."""
        return self.connections > len(self._listed) + (self._trial is not None)

    def is_dead(self, now: float) -> bool:
        """Whether it is too early for a trial."""
        return now < self.endpoint.dead_until or (now < self.missed_until and not self.standing)

    @property
    def is_unused(self) -> bool:
        """Whether nothing is known of it."""
        return not self.connections and not self.failures and self.endpoint.made_at == -math.inf

    @property
    def made_at(self) -> float:
        """As `Endpoint.made_at`."""
        return self.endpoint.made_at

    @property
    def closed_at(self) -> float:
        """As `Endpoint.closed_at`."""
        return self.endpoint.closed_at

    @property
    def window(self) -> Window | None:
        """As `Endpoint.window`."""
        return self.endpoint.window

    @property
    def failures(self) -> int:
        """Consecutive failures to get a session with this profile."""
        return self.endpoint.failures or self.misses

    @property
    def is_missing(self) -> bool:
        """Whether the last failure is that it missed what the profile demands."""
        return self.misses > 0 and self.missed_at >= self.endpoint.died_at

    @property
    def dead_until(self) -> float:
        """Until when it is left alone."""
        return max(self.endpoint.dead_until, self.missed_until)

    @property
    def died_at(self) -> float:
        """When it failed last."""
        return max(self.endpoint.died_at, self.missed_at)

    @property
    def reply(self) -> Reply | None:
        """The reply of its last failure."""
        return self.missed if self.is_missing else self.endpoint.reply

    @property
    def trial(self) -> object:
        """The connection on trial, of this profile, or of another one if the endpoint is on trial; None: there is none."""
        return self._trial or self.endpoint.trial

    @property
    def needs_trial(self) -> bool:
        """Whether its next connection is a trial."""
        endpoint = self.endpoint
        return (endpoint.failures > 0 and not endpoint.standing) or (self.misses > 0 and not self.standing)

    def with_jobs(self) -> list[Connection]:
        """Active connections, and the one on trial."""
        active = [self._listed[number] for number in self._numbers]
        return active if self._trial is None else [*active, self._trial]

    # ------------------------------------------------------------------ connections

    def connected(self) -> None:
        """Count a connection that is being made."""
        self.connections += 1
        self.endpoint.connected()

    def may_have_more(self, most: int, now: float, scope: bytes = b"") -> bool:
        """Whether it may have another connection, of at most so many for all profiles. `scope`: as in
        `DestinationLimits`."""
        return now >= self.missed_until and self.endpoint.may_have_more(most, now, scope)

    def closed(self) -> None:
        """Stop counting a closed connection."""
        self.connections -= 1
        self.endpoint.closed()

    def stands(self) -> None:
        """Count a session that stands."""
        self.standing += 1
        self.endpoint.stands()

    def stands_no_more(self) -> None:
        """Stop counting a session that leaves."""
        self.standing -= 1
        self.endpoint.stands_no_more()

    def try_with(self, connection: Connection | None) -> None:
        """Begin a trial with this connection; None: its own trial is over."""
        endpoint = self.endpoint
        if connection is None:
            if endpoint.trial is self._trial:
                endpoint.try_with(None)
        elif endpoint.failures:
            endpoint.try_with(connection)
        self._trial = connection

    def miss(self, now: float, until: float, reply: Reply, *, met_tls: bool = False) -> None:
        """Note that it missed what the profile demands: it gets no connections for it until then. `met_tls`: that was not
        TLS."""
        self.misses, self.missed_at, self.missed_until, self.missed = self.misses + 1, now, until, reply
        self.met_tls = met_tls

    def meet(self) -> None:
        """Forget what it missed."""
        self.misses, self.missed_at, self.missed_until, self.missed = 0, -math.inf, 0.0, None

    # ------------------------------------------------------------------ jobs
