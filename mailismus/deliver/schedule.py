"""The schedule: which job goes when, over how many connections, to which host (pure).

A simple one: jobs of a next hop in order; its hosts share the load and stand in for each other. Whatever wants to be
cleverer (concurrency by message, rates) takes the place of this module.

*Rules*
- A few busy connections that pipeline beat many that wait: one more for every `JOBS_A_CONNECTION` jobs that wait, and one
  for every `PATIENCE_S` that the first of them has waited.
- The hosts of the lowest preference that are not dead are used, the least busy first. A limit reached there is waited
  for, no reason for a worse host. A host is given no second connection while none has ever proved itself; while one that
  was dead is on trial like that, the next ones serve.
- A job has been tried when each host of its next hop is dead, or died since the job came, and no session stands.
- A next hop whose first job has waited `SLOW_AFTER_S` is slow: it may hold no more entries than there is room left
  (`excess`), so that any number of slow ones leave room for others. While less than `reserve` is left, one without a
  session holds none.
- Next hops that wait for the same host, or for the total to allow another connection, get it in the order they came; the
  sessions of others end for them when they have nothing to do, or are more than their share. While one without a
  connection waits for a host, one that has some gets no more of it.
- A next hop without a job, a connection or a look-up is forgotten.

Times are monotonic seconds. *Not here*: sockets, names, the queue, what is known of hosts (`hosts`).
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
"""More than the whole cache takes to drain into a relay that does some 500 entries a second."""
SLOW_REPLY_S = 1.0
"""A host that takes this long for its final reply gets nothing pipelined behind it: there is nothing to win."""
GIVE_BACK_LEAST_S = 2.0
GIVE_BACK_MOST_S = 60.0
NO_HOST = Reply(451, b"4.4.1", b"no host answers")

S = TypeVar("S")


@attrs.frozen(eq=False)
class Candidate:
    """A host of one next hop, under the name by which it was found. The lowest preference comes first."""

    name: str
    preference: int
    host: Host


class Hop(Generic[S]):
    """One next hop: what waits for it, its sessions (`S`) that are idle, its hosts."""

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
        """Jobs that a session ended under, untried: for sessions that have begun nothing yet."""
        self.entries = 0
        """Entries held: those that wait and those under way."""
        self.idle: list[S] = []
        self.candidates: Sequence[Candidate] = ()
        """By preference."""
        self.located_until = 0.0
        """When they are to be looked up again."""
        self.is_locating = False
        self.open = 0
        """Connections, those being made included, those that say QUIT not."""
        self.sessions = 0
        """Connections with a session that stands."""
        self.reply_s = 0.0
        """How long final replies take, a moving mean."""
        self.waits_for: Host | None = None
        """The host that has no connection for it now."""

    def add(self, job: Job) -> None:
        """A job is to be delivered."""
        self.pending.append(job)
        self.entries += len(job.entries)

    def release(self, entries: int) -> None:
        """So many of its entries are not held any more."""
        self.entries -= entries

    def begin_locating(self) -> None:
        """Its hosts are looked up."""
        self.is_locating = True

    def end_locating(self) -> None:
        """The look-up has ended."""
        self.is_locating = False

    def set_located(self, until: float) -> None:
        """Its hosts are known until then."""
        self.located_until = until

    def wait_for(self, host: Host | None) -> None:
        """Wait for a connection of this host; None: for none."""
        self.waits_for = host

    def connection_opened(self) -> None:
        self.open += 1

    def connection_left(self) -> None:
        self.open -= 1

    def session_stands(self) -> None:
        self.sessions += 1

    def session_ended(self) -> None:
        self.sessions -= 1

    def waited_s(self, now: float) -> float:
        """How long its first job has waited: about what all that wait need to drain."""
        return now - self.pending[0].queued_at if self.pending else 0.0

    def next_job(self, begun: int) -> Job | None:
        """The job for a session that has begun so many."""
        if self.returned and not begun:
            return self.returned.popleft()
        return self.pending.popleft() if self.pending else None

    def drain(self, until: float = math.inf) -> list[Job]:
        """What waits since this moment or before, taken away."""
        jobs = [*self.returned, *self.pending]
        self.returned.clear()
        self.pending.clear()
        if until < math.inf:
            self.pending.extend(job for job in jobs if job.queued_at > until)
            jobs = [job for job in jobs if job.queued_at <= until]
        return jobs

    def may_pipeline(self) -> bool:
        """Whether another transaction may travel behind a final dot."""
        return bool(self.pending) and self.reply_s < SLOW_REPLY_S

    def note_reply(self, took_s: float) -> None:
        """A final reply came after so long."""
        self.reply_s += (took_s - self.reply_s) / 4

    def set_candidates(self, candidates: Sequence[Candidate]) -> None:
        """Its hosts, as they are found now; of those that are named twice the better one counts."""
        seen: set[Host] = set()
        kept: list[Candidate] = []
        for candidate in sorted(candidates, key=lambda candidate: candidate.preference):
            if candidate.host not in seen:
                seen.add(candidate.host)
                kept.append(candidate)
        self.candidates = kept

    def tried_until(self, now: float) -> float:
        """Jobs that came at this moment or before have been tried with every host: minus infinity: none, infinity: all."""
        if self.sessions:
            return -math.inf
        return min((c.host.died_at for c in self.candidates if not c.host.is_dead(now)), default=math.inf)

    def dead_for_s(self, now: float) -> float:
        """For how long none of its hosts is connected to; 0: one is now."""
        return max(0.0, min((c.host.dead_until for c in self.candidates), default=now) - now)

    def last_reply(self) -> Reply:
        """Why the host died that died last."""
        last = max((c.host for c in reversed(self.candidates)), key=lambda host: host.died_at, default=None)
        return (last.reply if last is not None else None) or NO_HOST

    def has_other(self, than: Host, since: float, now: float) -> bool:
        """Whether there is another host, alive, that has not failed since then."""
        hosts = (candidate.host for candidate in self.candidates)
        return any(host is not than and not host.is_dead(now) and host.died_at < since for host in hosts)


class Schedule(Generic[S]):
    """The limits, and what counts against them. 0: no limit."""

    def __init__(self, max_connections: int, max_host_connections: int, hosts: Hosts, reserve: int = 0) -> None:
        self.set_limits(max_connections, max_host_connections, reserve)
        self.hosts = hosts
        self.hops: dict[NextHop, Hop[S]] = {}
        self.open = 0
        """Connections of all next hops."""
        self.starved: dict[Hop[S], None] = {}
        """Next hops that want a connection and wait for the total to allow it, the first first."""
        self.waiting: dict[Host, dict[Hop[S], None]] = {}
        """Those that wait for a connection of one host, the first first."""

    def set_limits(self, max_connections: int, max_host_connections: int, reserve: int) -> None:
        """For connections to come; `reserve`: entries that next hops without a session leave room for."""
        self._max_connections = max_connections or 1 << 30
        self._max_host_connections = max_host_connections or 1 << 30
        self._reserve = reserve

    def hop(self, next_hop: NextHop) -> Hop[S]:
        """The state of a next hop, made on demand."""
        hop = self.hops.get(next_hop)
        if hop is None:
            hop = self.hops[next_hop] = Hop(next_hop)
        return hop

    def forget_if_idle(self, hop: Hop[S]) -> None:
        """Nothing keeps it: it is made again when it is needed."""
        if not (hop.entries or hop.open or hop.is_locating) and self.hops.get(hop.next_hop) is hop:
            del self.hops[hop.next_hop]
            self.starved.pop(hop, None)
            self._wait_no_more(hop)

    def wants_session(self, hop: Hop[S], now: float) -> bool:
        """Whether what waits is worth one more busy session."""
        pending = hop.pending
        if not pending:
            return False
        busy = hop.open - len(hop.idle)
        if busy < 1 + len(pending) // JOBS_A_CONNECTION:
            return True
        return busy < 1 + len(pending) and busy < 1 + int((now - pending[0].queued_at) / PATIENCE_S)

    def wants_fresh_session(self, hop: Hop[S]) -> bool:
        """Whether returned jobs need one more connection than are being made."""
        return hop.open - hop.sessions < len(hop.returned) // JOBS_A_CONNECTION + bool(hop.returned)

    def choose(self, hop: Hop[S], now: float) -> Candidate | None:
        """Whom a new connection goes to; None: nobody now. One that the total does not allow is `starved`."""
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
                self._wait_no_more(hop)
            return None
        self._wait_no_more(hop)
        if self.open >= self._max_connections:
            self.starved[hop] = None
            return None
        return best

    def is_full(self, host: Host) -> bool:
        """Whether this host may have no more connections."""
        return host.connections >= self._max_host_connections

    def _is_owed(self, hop: Hop[S], host: Host) -> bool:
        """Whether the next connection to this host is due to another next hop, which has none at all."""
        return hop.open > 0 and any(
            other is not hop and not other.open and not other.is_locating and (other.pending or other.returned)
            for other in self.waiting.get(host, ())
        )

    def _wait(self, hop: Hop[S], host: Host) -> None:
        if hop.waits_for is not host:
            self._wait_no_more(hop)
            hop.wait_for(host)
        self.waiting.setdefault(host, {})[hop] = None

    def _wait_no_more(self, hop: Hop[S]) -> None:
        host = hop.waits_for
        hop.wait_for(None)
        if host is not None:
            waiting = self.waiting.get(host, {})
            waiting.pop(hop, None)
            if not waiting:
                self.waiting.pop(host, None)

    def next_waiting(self, host: Host, now: float) -> Hop[S] | None:
        """A next hop that may have a connection now: one that waited for this host, or for the total; None: none is left."""
        found: Hop[S] | None = None
        if self.open < self._max_connections:
            if host in self.waiting and not (self.is_full(host) or host.is_on_trial or host.is_paused(now)):
                found = next(iter(self.waiting[host]))
                self._wait_no_more(found)
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
        """Whether somebody waits for a connection that this host has."""
        return bool(self.starved) or host in self.waiting

    def is_wanted_by_others(self, hop: Hop[S], host: Host) -> bool:
        """Whether another next hop waits for what an idle session of this one holds."""
        if not self.is_wanted(host):
            return False
        waiting = (*self.starved, *self.waiting.get(host, ()))
        return any(other is not hop and (other.pending or other.returned) for other in waiting)

    def connection_opened(self, hop: Hop[S], host: Host) -> None:
        """One more, from the moment it is asked for."""
        self.open += 1
        hop.connection_opened()
        host.connection_opened()

    def connection_left(self, hop: Hop[S]) -> None:
        """One less for this next hop, though it may still say QUIT."""
        hop.connection_left()

    def connection_closed(self, host: Host) -> None:
        """One less."""
        self.open -= 1
        host.connection_closed()

    def session_stands(self, hop: Hop[S], host: Host) -> None:
        """Greeting and EHLO went well."""
        hop.session_stands()
        host.session_stands()
        self.hosts.stands(host)

    def session_ended(self, hop: Hop[S], host: Host) -> None:
        """One that stood is over."""
        hop.session_ended()
        host.session_ended()

    def excess(self, hop: Hop[S], room: int, now: float) -> tuple[list[Job], float]:
        """The newest jobs of a slow next hop that exceed its share, taken away, and for how many seconds: half of what the
        first has waited, so that a next hop that still takes some never runs dry."""
        waited_s = hop.waited_s(now)
        found: list[Job] = []
        if waited_s > SLOW_AFTER_S:
            kept, reserve = (1, 0) if hop.sessions else (0, self._reserve)
            while len(hop.pending) > kept and (hop.entries > room or room < reserve):
                job = hop.pending.pop()
                hop.release(len(job.entries))
                room += len(job.entries)
                found.append(job)
        return found, min(GIVE_BACK_MOST_S, max(GIVE_BACK_LEAST_S, waited_s / 2))
