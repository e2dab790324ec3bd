"""A host (address and port) for one profile, and its connections: which are active, idle, have room, or the fewest jobs.
Pure.

*Rules*
- A connection is *active* while it has jobs or is being made, else *idle*. The host is *closed* if it has none, and it is
  remembered when the one closed last had been made; *unused* if nothing is known of it.
- A host is *dead* from a failure until its time is over, then due for a *trial*: one connection with one job, which is not
  active before its session stands. A session that stands clears all failures.
- Profiles share no connection. They share the `endpoint`: its death, its limits, and its number of connections.
- A connection that *missed* what the profile demands (TLS) is a failure of this host alone, not of the endpoint: for a time
  it gets no more connections, and is dead if no session stands.
- The newest connection with room, and the newest one with fewer jobs than another, are found without looking at all of them:
  at most by the different numbers of jobs.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from typing import Protocol

from mailismus.deliver.job import Job
from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.security.profile import Profile
from mailismus.mail.reply import Reply

_UNSORTED = -1
"""The place of a connection among the crowded ones before anybody asks for it."""


class Carrier(Protocol):
    """The session over a connection, as the schedule uses it."""

    def begin(self) -> None:
        """Ask for the next job and begin it: the connection was idle."""

    def quit(self) -> None:
        """End it: it is idle."""


class Connection:
    """One connection: its jobs, as the schedule sees them."""

    __slots__ = (
        *("begun", "carrier", "host", "idle_number", "is_idle", "is_leaving", "is_listed", "is_standing", "jobs"),
        *("made_at", "mx_set", "number", "place", "queue"),
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

    def carry(self, carrier: Carrier) -> None:
        """Set the session over it."""
        self.carrier = carrier


class Host:
    """One address and port, for one profile. `destdb` alone sets what is remembered of it."""

    __slots__ = (
        *("__weakref__", "_by_jobs", "_limits", "_listed", "_moved", "_numbers", "_room", "_trial", "address"),
        *("connections", "endpoint", "idle", "met_tls", "missed", "missed_at", "missed_until", "misses", "port", "profile"),
        *("queued", "standing"),
    )

    def __init__(self, endpoint: Endpoint, profile: Profile, limits: ScheduleLimits) -> None:
        self.endpoint, self.profile = endpoint, profile
        self.address, self.port = endpoint.address, endpoint.port
        self._limits = limits
        self.connections = 0
        """Connections of this profile, those being made and those in QUIT included."""
        self.standing = 0
        """Connections with a session."""
        self._listed: dict[int, Connection] = {}
        self._numbers: list[int] = []
        """Numbers of the active connections, ascending."""
        self._room: list[int] = []
        """Of these, those with room, and some that had it when they were sorted in."""
        self._by_jobs: dict[int, list[int]] = {}
        """The others, by how many jobs they have, or had when they were sorted in."""
        self._moved: dict[Connection, None] = {}
        """Of these, those that have another number now."""
        self.idle: dict[Connection, None] = {}
        """In the order in which they became idle."""
        self.queued = 0
        """Jobs that wait in the queues of its connections."""
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

    def newest_with_room(self) -> Connection | None:
        """The newest active connection with room."""
        room, listed, backlog = self._room, self._listed, self._limits.backlog
        while room:
            connection = listed[room[-1]]
            if connection.jobs < backlog:
                return connection
            room.pop()
            self._crowd(connection)
        return None

    def newest(self) -> Connection | None:
        """The newest active connection."""
        numbers = self._numbers
        return self._listed[numbers[-1]] if numbers else None

    def newest_below(self, jobs: int) -> Connection | None:
        """The newest active connection with fewer jobs than this, of those without room."""
        for number in [number for number in self._room if self._listed[number].jobs >= self._limits.backlog]:
            _remove(self._room, number)
            self._crowd(self._listed[number])
        if self._moved:
            self._sort_in()
        found = max((numbers[-1] for count, numbers in self._by_jobs.items() if count < jobs), default=0)
        return self._listed[found] if found else None

    def most_crowded(self) -> Connection | None:
        """The connection with most jobs, if one has more than its backlog."""
        if self._moved:
            self._sort_in()
        most = max(self._by_jobs, default=0)
        return self._listed[self._by_jobs[most][0]] if most > self._limits.backlog else None

    def listed(self) -> list[Connection]:
        """Active and idle connections."""
        return list(self._listed.values())

    def with_jobs(self) -> list[Connection]:
        """Active connections, and the one on trial."""
        active = [self._listed[number] for number in self._numbers]
        return active if self._trial is None else [*active, self._trial]

    def being_made(self) -> list[Connection]:
        """Active connections without a session yet."""
        return [connection for connection in self._listed.values() if not connection.is_standing]

    def oldest(self, count: int) -> list[Connection]:
        """Some active connections with room, the oldest ones first."""
        return [self._listed[number] for number in self._room[:count]]

    # ------------------------------------------------------------------ connections

    def connected(self) -> None:
        """Count a connection that is being made."""
        self.connections += 1
        self.endpoint.connected()

    def may_have_more(self, most: int, now: float) -> bool:
        """Whether it may have another connection, of at most so many for all profiles."""
        return now >= self.missed_until and self.endpoint.may_have_more(most, now)

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

    def list(self, connection: Connection) -> None:
        """Make a connection active: it gets jobs from now on."""
        connection.set_listed(is_listed=True)
        self._listed[connection.number] = connection
        insort(self._numbers, connection.number)
        self._enter(connection)

    def unlist(self, connection: Connection) -> None:
        """Give a connection no more jobs."""
        if connection.is_listed:
            connection.set_listed(is_listed=False)
            if connection.is_idle:
                connection.wake()
                del self.idle[connection]
            else:
                _remove(self._numbers, connection.number)
                self._leave(connection)
            del self._listed[connection.number]

    def rest(self, connection: Connection, idle_number: int) -> None:
        """Make an active connection without jobs idle."""
        connection.rest(idle_number)
        self.idle[connection] = None
        _remove(self._numbers, connection.number)
        self._leave(connection)

    # ------------------------------------------------------------------ jobs

    def add_job(self, connection: Connection, job: Job) -> None:
        """Add a job to the queue of a connection: the only job of its message goes before every second one of messages with
        several, so that it does not wait for all of a large envelope, nor the envelope for ever."""
        queue = connection.queue
        if job.concurrency is not None or not queue or queue[-1].concurrency is None:
            queue.append(job)
        else:
            queue.insert(2 * sum([queued.concurrency is None for queued in queue]), job)
        self.queued += 1
        connection.jobs += 1
        if connection.is_idle:
            connection.is_idle = False
            del self.idle[connection]
            insort(self._numbers, connection.number)
            self._enter(connection)
        elif connection.place > 0:
            self._moved[connection] = None
        elif not connection.place and connection.jobs > self._limits.backlog and connection.is_listed:
            _remove(self._room, connection.number)
            self._crowd(connection)

    def take_first(self, connection: Connection) -> Job:
        """Take the first queued job, to begin its transaction: it counts until `end_job`."""
        self.queued -= 1
        connection.begun += 1
        return connection.queue.popleft()

    def take_away(self, connection: Connection, job: Job) -> None:
        """Take a queued job away from a connection."""
        connection.queue.remove(job)
        self.queued -= 1
        self.end_job(connection)

    def end_job(self, connection: Connection) -> None:
        """Stop counting a job that has ended."""
        jobs = connection.jobs = connection.jobs - 1
        if connection.place:
            if jobs < self._limits.backlog:
                self._leave(connection)
                insort(self._room, connection.number)
            elif connection.place > 0:
                self._moved[connection] = None

    def relist(self) -> None:
        """Sort all connections anew: the backlog has changed."""
        self._room.clear()
        self._by_jobs.clear()
        self._moved.clear()
        for number in self._numbers:
            self._enter(self._listed[number])

    def _crowd(self, connection: Connection) -> None:
        """Note that a connection which had room has none. Who is asked for next sorts it in."""
        connection.place = _UNSORTED
        self._moved[connection] = None

    def _enter(self, connection: Connection) -> None:
        if connection.jobs < self._limits.backlog:
            connection.place = 0
            insort(self._room, connection.number)
        else:
            self._sort_in_crowd(connection)

    def _sort_in_crowd(self, connection: Connection) -> None:
        jobs = connection.place = connection.jobs
        insort(self._by_jobs.setdefault(jobs, []), connection.number)

    def _leave(self, connection: Connection) -> None:
        self._moved.pop(connection, None)
        number, place = connection.number, connection.place
        connection.place = 0
        if not place:
            _remove(self._room, number)
        elif place > 0:
            numbers = self._by_jobs[place]
            _remove(numbers, number)
            if not numbers:
                del self._by_jobs[place]

    def _sort_in(self) -> None:
        """Sort in the connections whose number of jobs has changed."""
        for connection in list(self._moved):
            self._leave(connection)
            self._enter(connection)


def _remove(numbers: list[int], number: int) -> None:
    """Remove a number from an ascending list."""
    del numbers[bisect_left(numbers, number)]
