"""The schedule: moves jobs when something begins or ends (pure).

*Rules*
- A free worker goes to the first job of the line whose message may have one more.
- A connection for which there is no job becomes idle.
- When a limit grows, a job that has not begun leaves the most crowded connection, and may make another one.
- Jobs of a connection that ends are placed anew. While they could only ride on others at their host's limit, they wait until
  it is closed, `CLOSING_S` at most: the connection that takes its place takes them, and each is placed once.
- A next hop without jobs and look-up is forgotten.

Nothing here calls a session from within its own call but to begin on an idle connection or to end one: the rest is done by
`serve`, which the owner calls in a turn of its own after `want_service`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.routes.route import HOST_NONE, NextHop
from mailismus.deliver.schedule.choice import Choice, Wait, choose
from mailismus.deliver.schedule.destdb import HostFailure
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.handing_out import HandingOut
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.placing import LeftJobs
from mailismus.mail.reply import Reply

SLOW_AFTER_S = 5.0
"""A destination whose jobs wait for so long is slow: longer than a full cache needs to drain into a relay that takes some
500 entries a second."""
PATIENCE_S = 1.0
"""A connection that is silent for so long keeps no job that could begin elsewhere."""
CLOSING_S = 0.2
"""For how long jobs wait until the connection is closed that they were queued on: a reply to QUIT from far away."""
_QueuedAt = dict[Host, dict[NextHop, list[tuple[Job, Connection]]]]
"""The jobs in the queues of a host's connections by next hop, the last ones of each first."""
MOST_PLACED = 250
"""Waiting destinations, or crowded hosts, that one call of `serve` looks at; the others follow."""


class Schedule(HandingOut):
    """All of the schedule."""

    def collect(self, now: float) -> None:
        """Forget what was not used for long: destinations, their limits, and records of hosts."""
        self.known.collect(now)
        self.limits_of.forget_unused(now)
        self.destdb.collect(now)

    # ------------------------------------------------------------------ what happens to connections

    def rest(self, connection: Connection) -> None:
        """Note that a connection without jobs is kept idle: its worker is free."""
        self._idle_number += 1
        connection.host.rest(connection, self._idle_number)
        self.pool.rested(connection)
        if self.line or self._crowded or self._left:
            self._owner.want_service()

    def stand(self, connection: Connection, now: float) -> None:
        """Note that greeting and EHLO were accepted."""
        self.destdb.stand(connection, now)
        if connection.host in self._parked:
            self._owner.want_service()

    def fail(
        self, connection: Connection, reply: Reply, kind: HostFailure, label: bytes, now: float, *, was_broken: bool = False
    ) -> None:
        """Note that no session over this connection succeeds, for this reason. Its jobs are placed anew. `was_broken`: as in
        `DestDb.note_failure`."""
        host = connection.host
        self._leave(connection, label)
        if self.destdb.note_failure(connection, reply, kind, now, was_broken=was_broken):
            for sibling in self.destdb.hosts_at(host.endpoint):
                self._give_up_made(sibling, label)
        self._owner.want_service()

    def miss(self, connection: Connection, reply: Reply, label: bytes, now: float, *, met_tls: bool = False) -> None:
        """Note that this connection missed what its profile demands, for this reason. Its jobs are placed anew, on another
        host if there is one: this one is left alone for a while by this profile, and by no other. `met_tls`: what it missed
        is not TLS."""
        self._leave(connection, label)
        if self.destdb.note_missed(connection, reply, now, met_tls=met_tls):
            self._give_up_made(connection.host, label)
        self._owner.want_service()

    def refuse(self, connection: Connection, reply: Reply, label: bytes, now: float) -> None:
        """Note that the credentials of its profile are no good, for this reason: this profile leaves all hosts alone for a
        while."""
        self._leave(connection, label)
        for host in self.destdb.note_refused(connection, reply, now):
            self._give_up_made(host, label)
        self._owner.want_service()

    def _give_up_made(self, host: Host, label: bytes) -> None:
        """Place the jobs of connections that are being made anew: their host is dead."""
        for other in host.being_made():
            host.unlist(other)
            self._make_homeless(other, label)

    def leave(self, connection: Connection, now: float) -> None:
        """Note that a connection takes no more jobs; those that have not begun are placed anew. Harmless when repeated."""
        if connection.is_standing and len(connection.queue) > self.limits.backlog:
            self._left[connection] = LeftJobs(self._take_all(connection), now + CLOSING_S)
        self._leave(connection, HOST_NONE)

    def _leave(self, connection: Connection, label: bytes) -> None:
        if connection.is_leaving:
            return
        if connection.is_idle:
            self.pool.woke(connection)
        self.pool.left(connection)
        self.destdb.leave(connection)
        self._make_homeless(connection, label)
        self._owner.want_service()

    def _make_homeless(self, connection: Connection, label: bytes) -> None:
        self._homeless += [(job, label) for job in self._take_all(connection)]

    def is_worker_wanted(self, connection: Connection) -> bool:
        """Whether a job waits for a worker that this connection keeps until it is closed. Not where its host or set once
        said that there were too many: the host may count it until it has answered."""
        return bool(self.line) and connection.host.window is None and not connection.mx_set.window.is_cut

    def close(self, connection: Connection, now: float) -> None:
        """Note that a connection is closed: its worker is free."""
        self.destdb.close(connection, now)
        self.pool.closed()
        left = self._left.pop(connection, None)
        if left is not None:
            self._homeless += [(job, HOST_NONE) for job in left.jobs]
        if self.line or self._crowded or self._parked or left is not None:
            self._owner.want_service()

    def put_back(self, job: Job, label: bytes = HOST_NONE) -> None:
        """Place a job anew, in a later turn: it began and was not tried. `end_job` was called."""
        self._homeless.append((job, label))
        self._owner.want_service()

    def grown(self) -> None:
        """Note that a limit allows more connections."""
        if self._crowded or self._parked:
            self._owner.want_service()

    # ------------------------------------------------------------------ service

    def serve(self, now: float) -> None:
        """Place what waits and may go."""
        for connection, (jobs, until) in list(self._left.items()):
            if now >= until or not self._waits_for_place(jobs[0], connection, now):
                del self._left[connection]
                self._homeless += [(job, HOST_NONE) for job in jobs]
        for _ in range(len(self._homeless)):
            job, label = self._homeless.popleft()
            self.place(job, self.destinations[job.next_hop], now, label)
        waiting = self._parked.next_ones(MOST_PLACED)
        for destination in waiting:
            if destination.limits is not None:
                destination.limits.mx_set.note_silence(now, PATIENCE_S)
        while waiting:  # in turns: they may have the same hosts
            waiting = [destination for destination in waiting if self._unpark(destination, now)]
        self._serve_line(now)
        self._spread(now)

    def _waits_for_place(self, job: Job, connection: Connection, now: float) -> bool:
        """Whether a job of a connection that ends waits until this is closed: its host is at its limit and may have another
        one then, and until then the job could only ride on crowded ones, or none is there."""
        destination, endpoint = self.destinations[job.next_hop], connection.host.endpoint
        limits = destination.limits
        assert limits is not None
        if self.line or endpoint.window is not None or endpoint.connections != limits.server_limit:
            return False
        choice = choose(job, destination, self.pool, now, self._pick)
        is_ride = type(choice) is Connection and choice.jobs >= self.limits.backlog
        return (is_ride or choice is Wait.LIMIT) and limits.window.allows(limits.mx_set.connections, now)

    def _serve_line(self, now: float) -> None:
        line, pool = self.line, self.pool
        while line and pool.has_worker and now >= self._paused_until:
            before = len(line)
            job = line.take(self._may_go)
            if job is None:
                return
            if job.concurrency is not None:
                job.concurrency.end_wait()
            self.place(job, self.destinations[job.next_hop], now)
            if len(line) == before:  # it waits for an idle connection to end
                line.restore(job)
                return

    def _may_go(self, job: Job) -> bool:
        return self.pool.allows_job(job)

    def _spread(self, now: float) -> None:
        """Let jobs of crowded connections make others, or go to some with fewer jobs, where limits and workers allow it.
        Each one that moves makes the crowd smaller."""
        if self.pool.is_full or now < self._paused_until:
            return
        for host in list(self._crowded)[:MOST_PLACED]:
            del self._crowded[host]
            while (crowded := host.most_crowded()) is not None:
                self._crowded[host] = None
                queue = crowded.queue
                ends = (queue[0], queue[-1]) if len(queue) > 1 else tuple(queue)  # they may be for other hosts, too
                if not any(self._move(job, crowded, now) for job in ends):
                    break

    def relieve(self, connection: Connection, now: float) -> None:
        """Let jobs that have not begun leave a connection that has been silent for `PATIENCE_S`, if there is a better place.
        While nothing was refused its set may have one connection more for them, a single one until messages are accepted."""
        host = connection.host
        if not connection.is_listed or not connection.is_standing or connection.is_idle:
            return
        host.unlist(connection)
        for job in list(connection.queue):
            destination = self.destinations[job.next_hop]
            limits = destination.limits
            assert limits is not None
            choice = choose(job, destination, self.pool, now, self._pick)
            is_better = type(choice) is Host or (type(choice) is Connection and choice.jobs < self.limits.backlog)
            if not is_better and limits.mx_set.note_silence(now, PATIENCE_S):
                choice = choose(job, destination, self.pool, now, self._pick)
            if not self._carry_out(choice, job, connection, self.limits.backlog, destination, now):
                break
        host.list(connection)

    def _move(self, job: Job, crowded: Connection, now: float) -> bool:
        """Move a job of a crowded connection to another one, if it gets one that is better. Whether it did."""
        if self.pool.is_full:
            return False
        destination = self.destinations[job.next_hop]
        choice = choose(job, destination, self.pool, now, self._pick)
        return self._carry_out(choice, job, crowded, crowded.jobs - 1, destination, now)

    def _carry_out(
        self, choice: Choice, job: Job, before: Connection, below: int, destination: Destination, now: float
    ) -> bool:
        """Move a job from one connection to the chosen one, if that has fewer jobs than `below`, or to the chosen host."""
        if type(choice) is Host and not self.pool.is_full and now >= self._paused_until:
            self._take_away(job, before)
            self._open(job, choice, destination, now)
        elif type(choice) is Connection and choice.jobs < below:
            self._take_away(job, before)
            self._give(job, choice)
        else:
            return False
        return True

    # ------------------------------------------------------------------ others

    def located(self, destination: Destination, now: float) -> None:
        """Place the jobs that waited for the hosts of this destination."""
        for job in self.take_unlocated(destination):
            self.place(job, destination, now)

    def take_unlocated(self, destination: Destination) -> Sequence[Job]:
        """Remove and return the jobs that wait for the hosts of a destination."""
        self._unlocated.pop(destination, None)
        return destination.take_unlocated()

    def drain(self) -> list[Job]:
        """Remove and return all jobs that have not begun."""
        jobs: list[Job] = [job for job, _ in self._homeless]
        self._homeless.clear()
        for left in self._left.values():
            jobs += left.jobs
        self._left.clear()
        for job in self.line.drain():
            if job.concurrency is not None:
                job.concurrency.end_wait()
            jobs.append(job)
        for destination in self.destinations.values():
            jobs += destination.parked.drain()
            jobs += self.take_unlocated(destination)
        self._parked.clear()
        for host in self.destdb.hosts():
            for connection in host.with_jobs():
                jobs += self._take_all(connection)
        return jobs

    def excess(self, reserve: int, room: int, now: float) -> list[tuple[Job, Destination]]:
        """Remove and return jobs that can't be tried now, while there is room for less than `reserve` entries: those that
        wait for a limit or a trial, and of slow destinations those beyond as many entries as there is room; without a
        session, all. A job that has not waited for as long itself stays, and one that has got a connection at last: a
        destination is slow, too, while the jobs of a big message wait for workers."""
        found: list[tuple[Job, Destination]] = []
        queued: _QueuedAt = {}
        for destination in list(self.destinations.values()):
            if room >= reserve:
                break
            is_slow = destination.slow_s(now) > SLOW_AFTER_S
            for job in self._drain_parked(destination) if is_slow or destination.parked else ():
                room += len(job.entries)
                found.append((job, destination))
            held = destination.entries
            if is_slow and not _may_stay(destination, held, room, reserve):
                for job, connection in self._not_begun(destination, queued, now):
                    if now - job.queued_at <= SLOW_AFTER_S:
                        continue
                    if _may_stay(destination, held, room, reserve):
                        break
                    if connection is None:
                        destination.unlocated.remove(job)
                    else:
                        self._take_away(job, connection)
                    room += len(job.entries)
                    held -= len(job.entries)
                    found.append((job, destination))
        return found

    def _drain_parked(self, destination: Destination) -> list[Job]:
        jobs = destination.parked.drain()
        if jobs:
            self._parked.remove(destination)
        return jobs

    def _not_begun(self, destination: Destination, queued: _QueuedAt, now: float) -> list[tuple[Job, Connection | None]]:
        """Its jobs that wait for its hosts or on connections, the last ones first; without those of connections that are
        made just now: they are tried. `queued`: the queues that were listed for other destinations. Hosts are shared: each
        one's are listed once, however many destinations have it."""
        found: list[tuple[Job, Connection | None]] = [(job, None) for job in reversed(destination.unlocated)]
        for host in destination.labels:
            if host not in queued:
                by_hop = queued[host] = {}
                for connection in host.with_jobs():
                    is_new = not connection.is_standing and now - connection.made_at <= SLOW_AFTER_S
                    for job in () if is_new else reversed(connection.queue):
                        by_hop.setdefault(job.next_hop, []).append((job, connection))
            found += queued[host].get(destination.next_hop, ())
        return found

    @property
    def has_work(self) -> bool:
        """Whether a job waits anywhere but on a connection."""
        return bool(self.line or self._parked or self._homeless or self._left or self._unlocated)


def _may_stay(destination: Destination, held: int, room: int, reserve: int) -> bool:
    """Whether a slow destination with so many entries keeps them while there is room for so many others."""
    return held <= room and (destination.is_served or room >= reserve)
