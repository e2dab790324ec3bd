"""The hosts: the state of each address and port, shared by all next hops that use it (pure).

*Rules*
- A host is *dead* if no session with it succeeds and none is established: for `Deaths.first_s`, then twice as long after
  each further failure, up to `max_s`. A host that accepted the connection and refused the session is dead for `first_s`
  each time. Afterwards it gets one connection, which decides. An established session clears its failures.
- A host that fails while it has established sessions gets no further connections for `PAUSE_S`; those sessions are used.
- At most `limit` dead hosts are remembered; the ones that died first are dropped first. Another host is remembered only
  while a connection or a next hop needs it. So memory is bounded, whatever name servers answer.
- What is known goes out and comes in as records (`host_records`): of two that differ the newer one counts, but a host with
  an established session is alive.

Times are monotonic seconds; of records, UTC. *Not here*: which host is chosen (`schedule`); who keeps the records
(`host_snapshot`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakValueDictionary

import attrs

from mailismus.deliver.host_records import HostRecord, believed
from mailismus.mail.reply import Reply

FIRST_DEATH_S = 300.0
MAX_DEATH_S = 7200.0
FORGET_S = 7200.0
"""A failure this long after the last death counts as the first one."""
PAUSE_S = 30.0
MAX_DEAD = 10_000


@attrs.frozen
class Deaths:
    """How long a host is dead: the first time, and at most."""

    first_s: float = FIRST_DEATH_S
    max_s: float = MAX_DEATH_S

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
        """Connections, including those being opened and those in QUIT."""
        self.sessions = 0
        """Connections with an established session."""
        self.is_proven = False
        """Whether the last connection became a session."""
        self.reply: Reply | None = None
        """The reply of its last death."""
        self.forget()

    def forget(self) -> None:
        """Clear all failures."""
        self.paused_until = self.dead_until = 0.0
        self.died_at = -math.inf
        self.failures = 0
        """Consecutive failures to connect."""

    def connection_opened(self) -> None:
        self.connections += 1

    def connection_closed(self) -> None:
        self.connections -= 1

    def session_established(self) -> None:
        self.sessions += 1

    def session_ended(self) -> None:
        self.sessions -= 1

    def prove(self, *, is_proven: bool) -> None:
        """Note whether the last connection became a session."""
        self.is_proven = is_proven

    def pause(self, until: float) -> None:
        """Open no more connections until then."""
        self.paused_until = until

    def forget_failures(self) -> None:
        """Reset the count of failures: the next one counts as the first."""
        self.failures = 0

    def die(self, now: float, until: float, reply: Reply) -> None:
        """Note that no session with it succeeded, for this reason: it is dead until then."""
        self.failures += 1
        self.dead_until, self.died_at, self.reply = until, now, reply

    def adopt(self, died_at: float, until: float, failures: int, reply: Reply | None) -> None:
        """Take over a death that another copy noted."""
        self.died_at, self.dead_until, self.failures, self.reply = died_at, until, failures, reply

    def record(self, offset_s: float) -> HostRecord:
        """What is known of it. `offset_s`: UTC minus monotonic seconds."""
        if not self.failures:
            return HostRecord(self.address, self.port)
        noted_at, retry_at = round(self.died_at + offset_s, 3), round(self.dead_until + offset_s, 3)
        return HostRecord(self.address, self.port, noted_at, retry_at, self.failures, self.reply)

    def is_dead(self, now: float) -> bool:
        """Whether no connection to it is opened now."""
        return now < self.dead_until

    def is_paused(self, now: float) -> bool:
        """Whether it gets no more connections than it has now."""
        return self.sessions > 0 and now < self.paused_until

    @property
    def is_on_trial(self) -> bool:
        """Whether one connection decides before it gets others."""
        return self.connections > 0 and self.sessions == 0 and not self.is_proven


class Hosts:
    """All hosts in use, and the dead ones."""

    def __init__(self, deaths: Deaths = Deaths(), limit: int = MAX_DEAD) -> None:
        self.deaths = deaths
        """For later deaths."""
        self._limit = limit
        self._known: WeakValueDictionary[tuple[str, int], Host] = WeakValueDictionary()
        self._dead: dict[Host, None] = {}  # in the order of their deaths
        self.urgent_changes = 0
        """Rises when a host died, recovered, or was forgotten."""

    def use_deaths(self, deaths: Deaths) -> None:
        """Use other durations for later deaths."""
        self.deaths = deaths

    def find(self, address: str, port: int) -> Host:
        """The host at this address and port: one object for all callers."""
        host = self._known.get((address, port))
        if host is None:
            host = self._known[address, port] = Host(address, port)
        return host

    def note_session(self, host: Host) -> None:
        """Note that a session with it is established."""
        host.prove(is_proven=True)
        if host.died_at > -math.inf or host.paused_until:
            if host in self._dead:
                del self._dead[host]
                self.urgent_changes += 1
            host.forget()

    def note_failure(self, host: Host, reply: Reply, kind: HostFailure, now: float) -> None:
        """Note that no session with it succeeded, and why."""
        host.prove(is_proven=False)
        if host.sessions:
            host.pause(now + PAUSE_S)
            return
        if host.is_dead(now):  # other connections were under way when it died
            return
        if now - host.dead_until > FORGET_S or kind is HostFailure.NO_SESSION:
            host.forget_failures()
        death_s = min(self.deaths.max_s, self.deaths.first_s * 2.0 ** min(host.failures, 64))
        host.die(now, now + death_s, reply)
        self._remember(host)

    def _remember(self, host: Host) -> None:
        """Keep a host that died just now."""
        self.urgent_changes += 1
        self._dead.pop(host, None)
        self._dead[host] = None
        if len(self._dead) > self._limit:
            oldest = next(iter(self._dead))
            del self._dead[oldest]
            oldest.forget()

    def forget_deaths(self) -> None:
        """Clear the failures of every host."""
        dead, self._dead = self._dead, {}
        self.urgent_changes += bool(dead)
        for host in dead:
            host.forget()

    def records(self, offset_s: float) -> Iterator[HostRecord]:
        """What is known of hosts, in the order of their deaths, each as it is when the iterator comes to it: the caller may
        go on in later turns. `offset_s`: UTC minus monotonic seconds."""
        for host in list(self._dead):
            if host in self._dead:  # still
                yield host.record(offset_s)

    def adopt(self, records: Iterable[HostRecord], now: float, offset_s: float) -> None:
        """Take over what another copy knows that is newer. Order and repetitions do not matter. No host is dead for longer
        than this copy would have it. `offset_s`: UTC minus monotonic seconds."""
        for record in records:
            known = believed(record, now + offset_s, FORGET_S)
            if known is None or not known.noted_at:
                continue
            host = self.find(known.address, known.port)
            if host.sessions or known.noted_at <= host.record(offset_s).noted_at:
                continue
            if known.failures:
                until = min(known.retry_at - offset_s, now + self.deaths.max_s)
                host.adopt(known.noted_at - offset_s, until, known.failures, known.reply)
                self._remember(host)
            elif host in self._dead:
                del self._dead[host]
                host.forget()
                self.urgent_changes += 1

    @property
    def changes(self) -> int:
        """Rises with each change of the records: all of them are urgent."""
        return self.urgent_changes

    @property
    def remembered(self) -> int:
        """Number of hosts that have died and had no session since."""
        return len(self._dead)
