"""The database of destinations: every host in use, and what is remembered of the others. Pure.

*Rules*
- A host is *dead* if no session with it succeeds and none stands: for `Deaths.first_s`, then twice as long after each
  further failure, up to `max_s`. One that accepted the connection and refused the session is dead for `first_s` each time.
  Each time is shortened by up to a tenth, at random: hosts that died together in an outage are not tried together.
- When the last connection to a host is closed, it is remembered when that one had been made.
- All this is of an endpoint, whatever the profile. A host that missed what a profile demands gets no connection for
  `Deaths.first_s`, for that profile alone (`missed`).
- All of these are forgotten when they were not used for `forget_s`, and of each kind the oldest when there are more than
  `limit`. Another host is known only while a connection or a destination needs it. So memory is bounded, whatever name
  servers answer.

Times are monotonic seconds. *Not here*: which host is chosen (`choice`), how many connections it may have (`limits`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import attrs

from mailismus.deliver.knowledge.host_records import HostRecord, believed
from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.missed import MissedHosts
from mailismus.deliver.security.profile import PLAIN, Profile
from mailismus.mail.reply import Reply
from mailismus.observe.habits import WindowState
from mailismus.queue.limits import ILimits

FIRST_DEATH_S = 300.0
MAX_DEATH_S = 7200.0
MAX_RECORDS = 10_000
JITTER = 0.1
"""Of the time for which a host is dead: it is shortened by at most this share, so that a retry of mail that waited as long
finds the host due."""


@attrs.frozen
class Deaths:
    """How long a host is dead: the first time (`retry_host`), and at most."""

    first_s: float = FIRST_DEATH_S
    max_s: float = MAX_DEATH_S
    forget_s: float = MAX_DEATH_S
    """How long what is known of a host is kept when it is not used (`forget_host`)."""

    @classmethod
    def within(cls, retry_delays_s: Sequence[float]) -> Deaths:
        """The defaults, but the first at most the shortest retry delay, and the maximum at most the longest: with retries
        every second a recovered host is found within a second."""
        return cls(min(FIRST_DEATH_S, *retry_delays_s), min(MAX_DEATH_S, max(retry_delays_s)))


class HostFailure(enum.Enum):
    """Why there is no session with a host."""

    NO_CONNECTION = "no connection"
    NO_SESSION = "no session"
    """It accepted the connection, and refused or broke the session."""


class DestDb:
    """All hosts in use, and the remembered ones. `chance`: random numbers from 0 to 1, for the times of deaths."""

    def __init__(
        self,
        limits: ScheduleLimits,
        deaths: Deaths = Deaths(),
        limit: int = MAX_RECORDS,
        chance: Callable[[], float] = lambda: 0.0,
        shared: ILimits | None = None,
    ) -> None:
        """`shared`: limits hold over all servers."""
        self.limits, self._shared = limits, shared
        self._limit = limit
        self._chance = chance
        self._deaths = deaths
        self._known: WeakValueDictionary[tuple[str, int, Profile], Host] = WeakValueDictionary()
        self._endpoints: WeakValueDictionary[tuple[str, int], Endpoint] = WeakValueDictionary()
        self._hosts_at: WeakKeyDictionary[Endpoint, WeakSet[Host]] = WeakKeyDictionary()
        self._dead: dict[Endpoint, None] = {}
        """In the order of their deaths."""
        self._closed: dict[Endpoint, None] = {}
        """In the order in which their last connections were closed."""
        self.missed = MissedHosts(limit)
        self._number = 0
        self.urgent_changes = 0
        """Rises when a host died, recovered, or was forgotten."""
        self.changes = 0
        """Rises with each change of the records."""

    def use_deaths(self, deaths: Deaths) -> None:
        """Use other durations for later deaths."""
        self._deaths = deaths

    def find(self, address: str, port: int, profile: Profile = PLAIN) -> Host:
        """The host at this address and port for this profile: one object for all callers."""
        host = self._known.get((address, port, profile))
        if host is None:
            endpoint = self._endpoint(address, port)
            host = self._known[address, port, profile] = Host(endpoint, profile, self.limits)
            self._hosts_at.setdefault(endpoint, WeakSet()).add(host)
            self.missed.find(host)
        return host

    def _endpoint(self, address: str, port: int) -> Endpoint:
        """The endpoint at this address and port: one object for all profiles."""
        endpoint = self._endpoints.get((address, port))
        if endpoint is None:
            endpoint = self._endpoints[address, port] = Endpoint(address, port)
            if self._shared is not None:
                endpoint.share(self._shared)
        return endpoint

    def hosts(self) -> list[Host]:
        """All hosts that are known now."""
        return list(self._known.values())

    def endpoints(self) -> list[Endpoint]:
        """All endpoints that are known now."""
        return list(self._endpoints.values())

    def hosts_at(self, endpoint: Endpoint) -> list[Host]:
        """The hosts at this endpoint, one for each profile."""
        return list(self._hosts_at.get(endpoint, ()))

    def relist(self) -> None:
        """Sort the connections of each host anew: the backlog has changed."""
        for host in self.hosts():
            host.relist()

    @property
    def remembered(self) -> int:
        """Number of endpoints that have died and had no session since."""
        return len(self._dead)

    def dead_hosts(self) -> list[Endpoint]:
        """The endpoints that have died and had no session since, in the order of their deaths."""
        return list(self._dead)

    # ------------------------------------------------------------------ connections

    def connect(self, host: Host, mx_set: MxSet, now: float) -> Connection:
        """A connection that is being made from now on. If the host has failed before, it is on trial."""
        self._number += 1
        connection = Connection(self._number, host, mx_set, now)
        host.connected()
        mx_set.connected(now)
        if host.needs_trial:
            host.try_with(connection)
        else:
            host.list(connection)
        return connection

    def stand(self, connection: Connection, now: float) -> None:
        """Note that a session over this connection stands."""
        host = connection.host
        mx_set = connection.mx_set
        self.missed.stand(host)
        self._revive(host.endpoint, mx_set, now)
        if not connection.is_leaving:
            connection.stand()
            host.stands()
            mx_set.stands()
            if not connection.is_listed:
                host.list(connection)
        if host.trial is connection:
            host.try_with(None)

    def _revive(self, endpoint: Endpoint, mx_set: MxSet, now: float) -> None:
        """Note that an endpoint has answered as a mail server does."""
        if endpoint.failures:
            self._forget_dead(endpoint)
            self._note_change()
            if not mx_set.standing:
                mx_set.window.begin_anew(now)

    def leave(self, connection: Connection) -> None:
        """Give a connection no more jobs: it ends. Harmless when repeated."""
        if connection.is_leaving:
            return
        host = connection.host
        host.unlist(connection)
        connection.leave()
        connection.mx_set.left(was_standing=connection.is_standing)
        if host.trial is connection:
            host.try_with(None)

    def close(self, connection: Connection, now: float) -> None:
        """Note that a connection is closed."""
        host = connection.host
        host.closed()
        if connection.is_standing:
            host.stands_no_more()
        endpoint = host.endpoint
        if not endpoint.connections and connection.is_standing:
            endpoint.remember(connection.made_at, now)
            self._remember_closed(endpoint)

    # ------------------------------------------------------------------ deaths

    def note_failure(
        self, connection: Connection, reply: Reply, kind: HostFailure, now: float, *, was_broken: bool = False
    ) -> bool:
        """Note that this connection gave no session, or ended before a message, and why. Whether its host is dead from now
        on. While other sessions stand it is not: it may have no more connections than those. `was_broken`: it timed out or
        was cut off, so that nobody said how many are too many: it may have half of them."""
        host = connection.host.endpoint
        others = host.standing - connection.is_standing
        if others:
            if connection.is_standing:
                pass
            elif was_broken:
                host.cut(now, connection.made_at, others, reply)
            else:
                host.refuse(now, others, reply)
            return False
        if host.is_dead(now):  # other connections were being made when it died
            return False
        deaths = self._deaths
        failures = 0 if now - host.dead_until > deaths.forget_s or kind is HostFailure.NO_SESSION else host.failures
        death_s = self._shortened(min(deaths.max_s, deaths.first_s * 2.0 ** min(failures, 64)))
        host.die(failures + 1, now, now + death_s, reply)
        self._remember_dead(host)
        return True

    def _shortened(self, seconds: float) -> float:
        """A time shortened at random: what failed together is not tried together."""
        return seconds * (1.0 - JITTER * self._chance())

    def note_missed(self, connection: Connection, reply: Reply, now: float, *, met_tls: bool = False) -> bool:
        """Note that this connection missed what its profile demands, and why. Whether its host is dead for that profile from
        now on: while other sessions of it stand, it only gets no more of them. Its endpoint has answered.
        `met_tls`: what it missed is not TLS."""
        host = connection.host
        self._revive(host.endpoint, connection.mx_set, now)
        self.missed.miss(host, now, now + self._shortened(self._deaths.first_s), reply, met_tls=met_tls)
        return host.is_dead(now)

    def note_refused(self, connection: Connection, reply: Reply, now: float) -> list[Host]:
        """Note that the credentials of a connection's profile are no good, and why. Return the hosts that are dead for that
        profile from now on."""
        profile = connection.host.profile
        self._revive(connection.host.endpoint, connection.mx_set, now)
        hosts = [host for host in self.hosts() if host.profile is profile]
        self.missed.refuse(profile, hosts, now, now + self._shortened(self._deaths.first_s), reply)
        return [host for host in hosts if host.is_dead(now)]

    def _remember_dead(self, host: Endpoint) -> None:
        """Keep an endpoint that died just now."""
        self._note_change()
        self._dead.pop(host, None)
        self._dead[host] = None
        if len(self._dead) > self._limit:
            self._forget_dead(next(iter(self._dead)))

    def _note_change(self) -> None:
        """Note a change that is to be kept soon."""
        self.urgent_changes += 1
        self.changes += 1

    def forget_deaths(self) -> None:
        """Clear the failures of every host."""
        if self._dead:
            self._note_change()
        for host in list(self._dead):
            self._forget_dead(host)
        self.missed.forget_all()

    def forget_deaths_of(self, hosts: Iterable[Host]) -> None:
        """Clear the failures of these hosts."""
        found = list(hosts)
        self.missed.forget_of(found)
        dead = [host.endpoint for host in found if host.endpoint in self._dead]
        if dead:
            self._note_change()
        for endpoint in dead:
            self._forget_dead(endpoint)

    def collect(self, now: float, count: int = 100) -> None:
        """Forget some records that were not used for long."""
        before = now - self._deaths.forget_s
        for host in [host for host, _ in zip(self._closed, range(count), strict=False)]:
            if host.closed_at > before:
                break
            self._forget_closed(host)
        for host in [host for host, _ in zip(self._dead, range(count), strict=False)]:
            if host.dead_until <= before:
                self._forget_dead(host)
        self.missed.collect(before, now, count)

    # ------------------------------------------------------------------ records

    def records(self, offset_s: float) -> Iterator[HostRecord]:
        """What is known of hosts, in the order of their deaths and ends, each as it is when the iterator comes to it: the
        caller may go on in later turns. `offset_s`: UTC minus monotonic seconds."""
        for host in list(self._dead | self._closed):
            if host in self._dead or host in self._closed:  # still
                yield host.record(offset_s)

    def adopt_window(self, address: str, port: int, state: WindowState, now: float) -> None:
        """Begin with what another process knows of how many connections a host takes. It is kept as a closed host is."""
        host = self._endpoint(address, port)
        host.adopt_window(state, now)
        host.remember(-math.inf, now)
        self._remember_closed(host)

    def adopt(self, records: Iterable[HostRecord], now: float, offset_s: float) -> None:
        """Take over what another copy knows that is newer. Order and repetitions do not matter. No host is dead for longer
        than this copy would have it. `offset_s`: UTC minus monotonic seconds."""
        for record in records:
            known = believed(record, now + offset_s, self._deaths.forget_s)
            if known is not None:
                self._adopt(known, now, offset_s)

    def _adopt(self, known: HostRecord, now: float, offset_s: float) -> None:
        host = self._endpoint(known.address, known.port)
        mine = host.record(offset_s)
        if known.made_at > mine.made_at and not host.connections:
            host.remember(known.made_at - offset_s, now)
            self._remember_closed(host)
        if not known.noted_at or host.standing or known.noted_at <= mine.noted_at:
            return
        if known.failures:
            until = min(known.retry_at - offset_s, now + self._deaths.max_s)
            host.adopt(known.noted_at - offset_s, until, known.failures, known.reply)
            self._remember_dead(host)
        elif host in self._dead:
            self._note_change()
            self._forget_dead(host)

    def _remember_closed(self, host: Endpoint) -> None:
        self.changes += 1
        self._closed.pop(host, None)
        self._closed[host] = None
        if len(self._closed) > self._limit:
            self._forget_closed(next(iter(self._closed)))

    def _forget_closed(self, host: Endpoint) -> None:
        del self._closed[host]
        host.remember(-math.inf, -math.inf)

    def _forget_dead(self, host: Endpoint) -> None:
        self._dead.pop(host, None)
        host.live()
