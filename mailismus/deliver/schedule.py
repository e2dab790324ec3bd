"""The schedule: which job goes when, over how many connections, to which host (pure).

A simple one: jobs of a next hop in order; its hosts share the load and stand in for each other. Whatever wants to be
cleverer (concurrency by message, rates, knowledge of hosts that outlives a connection) takes the place of this module.

*Rules*
- A few busy connections that pipeline beat many that wait: one more for every `JOBS_A_CONNECTION` jobs that wait, and one
  for every `PATIENCE_S` that the first of them has waited.
- A host is given no second connection while none has ever proved itself; one that fails is left alone for
  `HOST_PAUSE_S`.
- When every host of a next hop failed and no session with any stands, the next hop is dead for `DEAD_S`: its jobs are
  deferred with that reason, without another connection.
- A next hop whose first job has waited `SLOW_AFTER_S` is slow: it may hold no more entries than there is room left
  (`excess`), so that any number of slow ones leave room for others.

Times are monotonic seconds. *Not here*: sockets, names, the queue.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from mailismus.deliver.job import Job
from mailismus.deliver.route import NextHop
from mailismus.mail.reply import Reply

JOBS_A_CONNECTION = 4
PATIENCE_S = 0.1
HOST_PAUSE_S = 30.0
DEAD_S = 5.0
SLOW_AFTER_S = 5.0
"""More than the whole cache takes to drain into a relay that does some 500 entries a second."""
SLOW_REPLY_S = 1.0
"""A host that takes this long for its final reply gets nothing pipelined behind it: there is nothing to win."""
GIVE_BACK_LEAST_S = 2.0
GIVE_BACK_MOST_S = 60.0

S = TypeVar("S")


class Host:
    """One address of a next hop."""

    __slots__ = ("address", "connections", "is_proven", "paused_until", "sessions")

    def __init__(self, address: str) -> None:
        self.address = address
        self.connections = 0
        """Connections, those being made included."""
        self.sessions = 0
        """Connections with a session that stands."""
        self.is_proven = False
        self.paused_until = 0.0


class Hop(Generic[S]):
    """One next hop: what waits for it, its sessions (`S`) that are idle, its hosts."""

    __slots__ = (
        "dead_reply",
        "dead_until",
        "entries",
        "hosts",
        "idle",
        "is_resolving",
        "next_hop",
        "open",
        "pending",
        "reply_s",
        "returned",
        "sessions",
    )

    def __init__(self, next_hop: NextHop) -> None:
        self.next_hop = next_hop
        self.pending: deque[Job] = deque()
        self.returned: deque[Job] = deque()
        """Jobs that a session ended under, untried: for sessions that have begun nothing yet."""
        self.entries = 0
        """Entries held: those that wait and those under way."""
        self.idle: list[S] = []
        self.hosts: list[Host] = []
        self.is_resolving = False
        self.open = 0
        """Connections, those being made included."""
        self.sessions = 0
        """Connections with a session that stands."""
        self.dead_until = 0.0
        self.dead_reply = Reply(451, b"4.4.1", b"no host answers")
        self.reply_s = 0.0
        """How long final replies take, a moving mean."""

    def is_dead(self, now: float) -> bool:
        """Whether its jobs are deferred without a try."""
        return now < self.dead_until

    def waited_s(self, now: float) -> float:
        """How long its first job has waited: about what all that wait need to drain."""
        return now - self.pending[0].queued_at if self.pending else 0.0

    def next_job(self, begun: int) -> Job | None:
        """The job for a session that has begun so many."""
        if self.returned and not begun:
            return self.returned.popleft()
        return self.pending.popleft() if self.pending else None

    def drain(self) -> list[Job]:
        """All that waits, taken away."""
        jobs = [*self.returned, *self.pending]
        self.returned.clear()
        self.pending.clear()
        return jobs

    def may_pipeline(self) -> bool:
        """Whether another transaction may travel behind a final dot."""
        return bool(self.pending) and self.reply_s < SLOW_REPLY_S

    def note_reply(self, took_s: float) -> None:
        """A final reply came after so long."""
        self.reply_s += (took_s - self.reply_s) / 4

    def set_addresses(self, addresses: list[str]) -> None:
        """The hosts, as its name resolves now; what is known of those that stay is kept."""
        known = {host.address: host for host in self.hosts}
        self.hosts = [known.get(address) or Host(address) for address in dict.fromkeys(addresses)]

    def find_host(self, address: str) -> Host | None:
        """The host at this address, unless the name no longer says so."""
        for host in self.hosts:
            if host.address == address:
                return host
        return None


class Schedule(Generic[S]):
    """The limits, and what counts against them. 0: no limit."""

    def __init__(self, max_connections: int, max_host_connections: int) -> None:
        self._max_connections = max_connections or 1 << 30
        self._max_host_connections = max_host_connections or 1 << 30
        self.hops: dict[NextHop, Hop[S]] = {}
        self.open = 0
        """Connections of all next hops."""
        self._host_connections: dict[tuple[str, int], int] = {}
        self.starved: deque[Hop[S]] = deque()
        """Next hops that want a connection and wait for the total to allow it."""

    def hop(self, next_hop: NextHop) -> Hop[S]:
        """The state of a next hop, made on demand."""
        hop = self.hops.get(next_hop)
        if hop is None:
            hop = self.hops[next_hop] = Hop(next_hop)
        return hop

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

    def choose_host(self, hop: Hop[S], now: float) -> str | None:
        """The address that a new connection goes to, the least used one first; None: none may have one now."""
        allowed = [host for host in hop.hosts if self._may_connect(hop, host)]
        if not allowed:
            return None
        awake = [host for host in allowed if host.paused_until <= now]
        if awake:
            best = min(awake, key=lambda host: host.connections)
        elif not hop.open:  # all were found wanting, but something must be tried
            best = min(allowed, key=lambda host: host.paused_until)
        else:
            return None
        if self.open >= self._max_connections:
            if hop not in self.starved:
                self.starved.append(hop)
            return None
        return best.address

    def _may_connect(self, hop: Hop[S], host: Host) -> bool:
        if host.connections and not host.sessions and not host.is_proven:
            return False
        return self._host_connections.get((host.address, hop.next_hop.port), 0) < self._max_host_connections

    def must_yield(self, hop: Hop[S]) -> bool:
        """Whether a session of this next hop should end after its job, because others wait for a connection."""
        return bool(self.starved) and hop.open > max(1, self._max_connections // (len(self.starved) + 1))

    def connection_opened(self, hop: Hop[S], address: str) -> None:
        """One more, from the moment it is asked for."""
        self.open += 1
        hop.open += 1
        key = (address, hop.next_hop.port)
        self._host_connections[key] = self._host_connections.get(key, 0) + 1
        host = hop.find_host(address)
        if host is not None:
            host.connections += 1

    def connection_closed(self, hop: Hop[S], address: str) -> None:
        """One less."""
        self.open -= 1
        hop.open -= 1
        key = (address, hop.next_hop.port)
        left = self._host_connections.get(key, 1) - 1
        if left:
            self._host_connections[key] = left
        else:
            self._host_connections.pop(key, None)
        host = hop.find_host(address)
        if host is not None and host.connections:
            host.connections -= 1

    def session_stands(self, hop: Hop[S], address: str) -> None:
        """Greeting and EHLO went well."""
        hop.sessions += 1
        host = hop.find_host(address)
        if host is not None:
            host.sessions += 1
            host.is_proven = True
            host.paused_until = 0.0

    def session_ended(self, hop: Hop[S], address: str) -> None:
        """One that stood is over."""
        hop.sessions -= 1
        host = hop.find_host(address)
        if host is not None and host.sessions:
            host.sessions -= 1

    def host_failed(self, hop: Hop[S], address: str, reply: Reply, now: float) -> None:
        """No session could be had with this host; the last one that fails makes the next hop dead."""
        host = hop.find_host(address)
        if host is not None:
            host.is_proven = False
            host.paused_until = now + HOST_PAUSE_S
        if not hop.sessions and all(host.paused_until > now for host in hop.hosts):
            self.declare_dead(hop, reply, now)

    def declare_dead(self, hop: Hop[S], reply: Reply, now: float) -> None:
        """Nothing can reach this next hop for a while, and why."""
        hop.dead_until, hop.dead_reply = now + DEAD_S, reply
        for host in hop.hosts:
            host.paused_until = min(host.paused_until, hop.dead_until)

    def excess(self, hop: Hop[S], room: int, now: float) -> tuple[list[Job], float]:
        """The newest jobs of a slow next hop that exceed its share, taken away, and for how many seconds: half of what the
        first has waited, so that a next hop that still takes some never runs dry."""
        waited_s = hop.waited_s(now)
        found: list[Job] = []
        if waited_s > SLOW_AFTER_S:
            while len(hop.pending) > 1 and hop.entries > room:
                job = hop.pending.pop()
                hop.entries -= len(job.entries)
                room += len(job.entries)
                found.append(job)
        return found, min(GIVE_BACK_MOST_S, max(GIVE_BACK_LEAST_S, waited_s / 2))
