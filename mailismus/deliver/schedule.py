"""The schedule: when each job starts, over how many connections, to which host (pure).

Deliberately simple: jobs of a next hop run in FIFO order; its hosts share the load and replace each other. A better
scheduler (concurrency by message, rates) would replace this module.

*Rules*
- Few busy connections that pipeline are faster than many that wait: a next hop gets one connection, one more for every
  `JOBS_A_CONNECTION` waiting jobs, or one more for every `PATIENCE_S` that its first job has waited.
- The hosts of the lowest preference that are not dead are used, the least busy first. If their limit is reached, the next
  hop waits and does not fall back to a higher preference. A host without a proven connection gets no second one. While a
  host that was dead is on trial like that, the following hosts serve.
- A job has been tried when each host of its next hop is dead, or died since the job came, and no session is established.
- A next hop is slow if its first job has waited `SLOW_AFTER_S`. A slow one holds at most as many entries as there is room
  left (`excess`), so that any number of them leave room for others. With less than `reserve` left, one without a session
  holds none.
- Next hops that wait for a host, or for the total of connections, get one in FIFO order. Sessions of other next hops end for
  them when they are idle or exceed their share. While a next hop without a connection waits for a host, one with connections
  gets no more of it.
- A next hop without job, connection and look-up is forgotten.

Times are monotonic seconds. *Not here*: sockets, names, the queue, the state of hosts (`hosts`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

import attrs

from mailismus.deliver.hosts import Host, Hosts
from mailismus.deliver.job import Job
from mailismus.deliver.route import NextHop
from mailismus.mail.reply import Reply

JOBS_A_CONNECTION = 4
PATIENCE_S = 0.1
SLOW_AFTER_S = 5.0
"""Longer than a full cache needs to drain into a relay that takes some 500 entries a second."""
SLOW_REPLY_S = 1.0
"""A host that takes this long for its final reply gets nothing pipelined behind it: nothing would be gained."""
MIN_GIVE_BACK_S = 2.0
MAX_GIVE_BACK_S = 60.0
NO_HOST = Reply(451, b"4.4.1", b"no host answers")

S = TypeVar("S")


@attrs.frozen(eq=False)
class Candidate:
    """A host of one next hop, with the name by which it was found. The lowest preference comes first."""

    name: str
    preference: int
    host: Host


class Hop(Generic[S]):
    """State of one next hop: waiting jobs, idle sessions (`S`), hosts."""

    __slots__ = (
        "candidates",
        "entries",
        "idle",
        "is_locating",
        "located_until",
        "next_hop",
        "open",
        "pending",
        "reply_s",
        "returned",
        "sessions",
        "waits_for",
    )

    def __init__(self, next_hop: NextHop) -> None:
        self.next_hop = next_hop
        self.pending: deque[Job] = deque()
        self.returned: deque[Job] = deque()
        """Untried jobs of a session that ended: for sessions that have begun nothing yet."""
        self.entries = 0
        """Entries held: waiting or under way."""
        self.idle: list[S] = []
        self.candidates: Sequence[Candidate] = ()
        """In the order of preference."""
        self.located_until = 0.0
        """When to look them up again."""
        self.is_locating = False
        self.open = 0
        """Connections, including those being opened, without those in QUIT."""
        self.sessions = 0
        """Connections with an established session."""
        self.reply_s = 0.0
        """Moving average of the time to a final reply."""
        self.waits_for: Host | None = None
        """The host that has no free connection for it."""

    def add(self, job: Job) -> None:
        """Append a job that is to be delivered."""
        self.pending.append(job)
        self.entries += len(job.entries)

    def release(self, entries: int) -> None:
        """Stop counting entries that are not held any more."""
        self.entries -= entries

    def begin_locating(self) -> None:
        """Note that its hosts are looked up."""
        self.is_locating = True

    def end_locating(self) -> None:
        """Note that the look-up has ended."""
        self.is_locating = False

    def set_located(self, until: float) -> None:
        """Note until when its hosts are known. Monotonic seconds."""
        self.located_until = until

    def wait_for(self, host: Host | None) -> None:
        """Wait until this host may get another connection. None: wait for no host."""
        self.waits_for = host

    def connection_opened(self) -> None:
        self.open += 1

    def connection_left(self) -> None:
        self.open -= 1

    def session_established(self) -> None:
        self.sessions += 1

    def session_ended(self) -> None:
        self.sessions -= 1

    def waited_s(self, now: float) -> float:
        """How long its first job has waited: about the time that all waiting jobs need."""
        return now - self.pending[0].queued_at if self.pending else 0.0

    def next_job(self, begun: int) -> Job | None:
        """The next job for a session that has begun `begun` jobs."""
        if self.returned and not begun:
            return self.returned.popleft()
        return self.pending.popleft() if self.pending else None

    def drain(self, until: float = math.inf) -> list[Job]:
        """Remove and return the jobs that wait since `until` or earlier."""
        jobs = [*self.returned, *self.pending]
        self.returned.clear()
        self.pending.clear()
        if until < math.inf:
            self.pending.extend(job for job in jobs if job.queued_at > until)
            jobs = [job for job in jobs if job.queued_at <= until]
        return jobs

    def note_reply(self, took_s: float) -> None:
        """Record the time to a final reply."""
        self.reply_s += (took_s - self.reply_s) / 4

    def set_candidates(self, candidates: Sequence[Candidate]) -> None:
        """Set its hosts; of duplicates the one with the lower preference counts."""
        seen: set[Host] = set()
        kept: list[Candidate] = []
        for candidate in sorted(candidates, key=lambda candidate: candidate.preference):
            if candidate.host not in seen:
                seen.add(candidate.host)
                kept.append(candidate)
        self.candidates = kept

    def tried_until(self, now: float) -> float:
        """Jobs that came at this time or earlier have been tried with every host. Minus infinity: none, infinity: all."""
        if self.sessions:
            return -math.inf
        return min((c.host.died_at for c in self.candidates if not c.host.is_dead(now)), default=math.inf)

    def dead_for_s(self, now: float) -> float:
        """For how long all its hosts stay dead; 0: one is alive."""
        return max(0.0, min((c.host.dead_until for c in self.candidates), default=now) - now)

    def last_reply(self) -> Reply:
        """The reply of the host that died last."""
        last = max((c.host for c in reversed(self.candidates)), key=lambda host: host.died_at, default=None)
        return (last.reply if last is not None else None) or NO_HOST

    def has_other(self, than: Host, since: float, now: float) -> bool:
        """Whether another host is alive and has not failed since then."""
        hosts = (candidate.host for candidate in self.candidates)
        return any(host is not than and not host.is_dead(now) and host.died_at < since for host in hosts)


class Schedule(Generic[S]):
    """The connection limits and their use. 0: no limit."""

    def __init__(self, max_connections: int, max_host_connections: int, hosts: Hosts, reserve: int = 0) -> None:
        self.set_limits(max_connections, max_host_connections, reserve)
        self.hosts = hosts
        self.hops: dict[NextHop, Hop[S]] = {}
        self.open = 0
        """Connections of all next hops."""
        self.starved: dict[Hop[S], None] = {}
        """Next hops that wait for the total of connections, in FIFO order."""
        self.waiting: dict[Host, dict[Hop[S], None]] = {}
        """Next hops that wait for a connection of one host, in FIFO order."""

    def set_limits(self, max_connections: int, max_host_connections: int, reserve: int) -> None:
        """Set limits for later connections. `reserve`: entries that next hops without a session leave free."""
        self._max_connections = max_connections or 1 << 30
        self._max_host_connections = max_host_connections or 1 << 30
        self._reserve = reserve

    def hop(self, next_hop: NextHop) -> Hop[S]:
        """The state of a next hop; makes it if needed."""
        hop = self.hops.get(next_hop)
        if hop is None:
            hop = self.hops[next_hop] = Hop(next_hop)
        return hop

    def forget_if_idle(self, hop: Hop[S]) -> None:
        """Drop the state of a next hop that nothing uses; `hop` makes it again."""
        if not (hop.entries or hop.open or hop.is_locating) and self.hops.get(hop.next_hop) is hop:
            del self.hops[hop.next_hop]
            self.starved.pop(hop, None)
            self._stop_waiting(hop)

    def wants_session(self, hop: Hop[S], now: float) -> bool:
        """Whether the waiting jobs justify one more busy session."""
        pending = hop.pending
        if not pending:
            return False
        busy = hop.open - len(hop.idle)
        if busy < 1 + len(pending) // JOBS_A_CONNECTION:
            return True
        return busy < 1 + len(pending) and busy < 1 + int((now - pending[0].queued_at) / PATIENCE_S)

    def wants_fresh_session(self, hop: Hop[S]) -> bool:
        """Whether returned jobs need more connections than are being opened."""
        return hop.open - hop.sessions < len(hop.returned) // JOBS_A_CONNECTION + bool(hop.returned)

    def choose(self, hop: Hop[S], now: float) -> Candidate | None:
        """The host for a new connection; None: none now. A next hop that only the total stops is `starved`."""
        best: Candidate | None = None
        waits_for: Candidate | None = None
        for candidate in hop.candidates:
            better = best or waits_for
            if better is not None and candidate.preference > better.preference:
                break
            host = candidate.host
            if host.is_dead(now) or (host.failures and host.is_on_trial):
                continue
            if host.is_on_trial or host.is_paused(now) or self.is_full(host) or self._is_owed(hop, host):
                waits_for = candidate
            elif best is None or host.connections < best.host.connections:
                best = candidate
        if best is None:
            if waits_for is not None and (not hop.open or self.is_full(waits_for.host)):
                self._wait(hop, waits_for.host)
            else:
                self._stop_waiting(hop)
            return None
        self._stop_waiting(hop)
        if self.open >= self._max_connections:
            self.starved[hop] = None
            return None
        return best

    def is_full(self, host: Host) -> bool:
        """Whether this host may have no more connections."""
        return host.connections >= self._max_host_connections

    def _is_owed(self, hop: Hop[S], host: Host) -> bool:
        """Whether another next hop, without any connection, has the claim to the next connection of this host."""
        return hop.open > 0 and any(
            other is not hop and not other.open and not other.is_locating and (other.pending or other.returned)
            for other in self.waiting.get(host, ())
        )

    def _wait(self, hop: Hop[S], host: Host) -> None:
        if hop.waits_for is not host:
            self._stop_waiting(hop)
            hop.wait_for(host)
        self.waiting.setdefault(host, {})[hop] = None

    def _stop_waiting(self, hop: Hop[S]) -> None:
        host = hop.waits_for
        hop.wait_for(None)
        if host is not None:
            waiting = self.waiting.get(host, {})
            waiting.pop(hop, None)
            if not waiting:
                self.waiting.pop(host, None)

    def next_waiting(self, host: Host, now: float) -> Hop[S] | None:
        """The next hop that may open a connection now: it waited for this host, or for the total; None: none is left."""
        found: Hop[S] | None = None
        if self.open < self._max_connections:
            if host in self.waiting and not (self.is_full(host) or host.is_on_trial or host.is_paused(now)):
                found = next(iter(self.waiting[host]))
                self._stop_waiting(found)
            elif self.starved:
                found = next(iter(self.starved))
                del self.starved[found]
        return found

    def must_yield(self, hop: Hop[S], host: Host) -> bool:
        """Whether a session with this host should end after its job, because other next hops wait for a connection."""
        if self.starved and hop.open > max(1, self._max_connections // (len(self.starved) + 1)):
            return True
        waiting = self.waiting.get(host, {})
        others = len(waiting) - (hop in waiting)
        return others > 0 and hop.open > max(1, self._max_host_connections // (others + 1))

    def is_wanted(self, host: Host) -> bool:
        """Whether a next hop waits for a connection of this host."""
        return bool(self.starved) or host in self.waiting

    def is_wanted_by_others(self, hop: Hop[S], host: Host) -> bool:
        """Whether another next hop waits for the connection of an idle session of this one."""
        if not self.is_wanted(host):
            return False
        waiting = (*self.starved, *self.waiting.get(host, ()))
        return any(other is not hop and (other.pending or other.returned) for other in waiting)

    def connection_opened(self, hop: Hop[S], host: Host) -> None:
        """Count a connection, from its request on."""
        self.open += 1
        hop.connection_opened()
        host.connection_opened()

    def connection_left(self, hop: Hop[S]) -> None:
        """Stop counting a connection of this next hop, though it may still be in QUIT."""
        hop.connection_left()

    def connection_closed(self, host: Host) -> None:
        """Stop counting a closed connection."""
        self.open -= 1
        host.connection_closed()

    def session_established(self, hop: Hop[S], host: Host) -> None:
        """Count a session whose greeting and EHLO succeeded."""
        hop.session_established()
        host.session_established()
        self.hosts.note_session(host)

    def session_ended(self, hop: Hop[S], host: Host) -> None:
        """Stop counting an established session."""
        hop.session_ended()
        host.session_ended()

    def excess(self, hop: Hop[S], room: int, now: float) -> tuple[list[Job], float]:
        """Remove the newest jobs of a slow next hop beyond its share. Returns them, and for how many seconds to give them
        back."""
        waited_s = hop.waited_s(now)
        found: list[Job] = []
        if waited_s > SLOW_AFTER_S:
            kept, reserve = (1, 0) if hop.sessions else (0, self._reserve)
            while len(hop.pending) > kept and (hop.entries > room or room < reserve):
                job = hop.pending.pop()
                hop.release(len(job.entries))
                room += len(job.entries)
                found.append(job)
        return found, give_back_delay_s(waited_s)


def give_back_delay_s(waited_s: float) -> float:
    """For how many seconds to give back jobs of a next hop whose first job has waited so long. Half of that: a next hop that
    still takes some never runs dry."""
    return min(MAX_GIVE_BACK_S, max(MIN_GIVE_BACK_S, waited_s / 2))
