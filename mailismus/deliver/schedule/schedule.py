"""The schedule: gives each job a place, and moves jobs when something begins or ends (pure).

*Rules*
- A job is in one place: the queue of a connection, the line for a worker, its destination's own line (it waits for a limit
  or a trial), the look-up of its destination, or under way.
- A free worker goes to the first job of the line whose message may have one more.
- A connection without jobs takes one that waits for its destinations, or one that has not begun on a connection that is
  slower or has more jobs; else it becomes idle.
- When a limit grows, a job that has not begun leaves the most crowded connection, and may make another one.
- Where a host's limit is reached, an idle connection of another profile ends: nothing else would use it.
- Jobs of a connection that ends are placed anew. A job whose hosts are all dead has been tried.
- A next hop without jobs and look-up is forgotten.

Nothing here calls a session from within its own call but to begin on an idle connection or to end one: the rest is done by
`serve`, which the owner calls in a turn of its own after `want_service`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from mailismus.deliver.concurrency import Concurrency
from mailismus.deliver.job import Job
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.route import HOST_NONE
from mailismus.deliver.schedule.choice import FRESH_AFTER, Choice, PickOne, Wait, choose
from mailismus.deliver.schedule.destdb import DestDb, HostFailure
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.destinations import KnownDestinations
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.line import Line
from mailismus.deliver.schedule.parked import ParkedDestinations
from mailismus.deliver.schedule.pool import Pool
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.mail.reply import Reply

SLOW_AFTER_S = 5.0
"""A destination whose jobs wait for so long is slow: longer than a full cache needs to drain into a relay that takes some
500 entries a second."""
PATIENCE_S = 1.0
"""A connection that is silent for so long keeps no job that could begin elsewhere."""
LOOKED_AT = 8
"""Connections of one host that are looked at for a job to take over."""
MOST_PLACED = 250
"""Waiting destinations, or crowded hosts, that one call of `serve` looks at; the others follow."""


class ScheduleOwner(Protocol):
    """What carries out the schedule's decisions."""

    def open_connection(self, connection: Connection, destination: Destination) -> None:
        """Make this connection, for a job of this destination. Its end is told in a later turn."""

    def locate(self, destination: Destination, job: Job, now: float) -> bool | Outcome:
        """Whether the hosts of a destination are known now, for this job; if not, `located` is called when they are, and
        `take_unlocated` when there are none. An outcome: that of its mail, known already."""

    def defer(self, job: Job, destination: Destination, reply: Reply, label: bytes, known_for_s: float | None) -> None:
        """Settle a job for which there is no host. `label`: the host tried just now, or none. `known_for_s`: as in
        `mail.outcome.Outcome`."""

    def want_service(self) -> None:
        """Call `serve` in a later turn."""


class Schedule:
    """Jobs, connections, and hosts. `pick`: one of some hosts at random."""

    def __init__(self, destdb: DestDb, limits_of: LimitsOf, owner: ScheduleOwner, pick: PickOne) -> None:
        self._owner, self._pick = owner, pick
        self.destdb = destdb
        self.limits = destdb.limits
        self.limits_of = limits_of
        self.pool = Pool(self.limits)
        self.line = Line()
        """Jobs that wait for a worker."""
        self.known = KnownDestinations(limits_of)
        self.destinations = self.known.by_next_hop
        self._concurrencies: dict[SpoolId, Concurrency] = {}
        self._homeless: deque[tuple[Job, bytes]] = deque()
        """Jobs of connections that ended, and the host that was tried."""
        self._unlocated: dict[Destination, None] = {}
        """Destinations with jobs that wait for their hosts."""
        self._parked = ParkedDestinations()
        self._crowded: dict[Host, None] = {}
        """Hosts of which a connection has, or had, more jobs than the backlog."""
        self._idle_number = 0
        self._paused_until = 0.0
        self._has_rates = limits_of.has_rates

    def follow_settings(self) -> None:
        """Take over what `limits_of` has taken over."""
        self._has_rates = self.limits_of.has_rates

    # ------------------------------------------------------------------ destinations and jobs

    def concurrency(self, spool_id: SpoolId) -> Concurrency:
        """The concurrency of a message with several recipients. Counts a job of it; `forget_job` ends that."""
        found = self._concurrencies.get(spool_id)
        if found is None:
            found = self._concurrencies[spool_id] = Concurrency(spool_id)
        found.count_job()
        return found

    def forget_job(self, job: Job, destination: Destination) -> None:
        """Forget a job that is settled or given back. It is in no place."""
        if job.concurrency is not None:
            destination.close(job)
            self.forget_concurrency(job.concurrency)
        self.known.forget_if_unused(destination)

    def forget_concurrency(self, concurrency: Concurrency) -> None:
        """Stop counting a job of a message."""
        if concurrency.end_job():
            del self._concurrencies[concurrency.spool_id]

    def collect(self, now: float) -> None:
        """Forget what was not used for long: destinations, their limits, and records of hosts."""
        self.known.collect(now)
        self.limits_of.forget_unused(now)
        self.destdb.collect(now)

    # ------------------------------------------------------------------ placing

    def place(self, job: Job, destination: Destination, now: float, label: bytes = HOST_NONE) -> None:
        """Give a job a place. `label`: the host at which it was tried just now."""
        if destination.located_until > now:
            sole = destination.sole
            if sole is not None and not self._has_rates and job.put_backs < FRESH_AFTER:
                connection = sole.newest_with_room()
                if connection is None and sole.idle and job.concurrency is None:
                    connection = next(reversed(sole.idle))
                if connection is not None:  # the usual cases
                    self._give(job, connection)
                    return
        else:
            known = self._owner.locate(destination, job, now)
            if known is not True and not destination.is_served:
                if known is False:
                    destination.unlocated.append(job)
                    self._unlocated[destination] = None
                else:
                    self._owner.defer(job, destination, known.reply, known.host, math.inf)
                return
        if self._has_rates and destination.parked:
            self._park(job, destination)  # nothing passes what waits for a rate
        else:
            self._place(job, destination, now, label)

    def _place(self, job: Job, destination: Destination, now: float, label: bytes) -> None:
        """Give a job a place now. The hosts of its destination are known."""
        if self._has_rates and not _may_send(job, destination, now):
            self._park(job, destination)
            return
        choice = choose(job, destination, self.pool, now, self._pick)
        if type(choice) is Connection:
            self._give(job, choice)
        elif type(choice) is Host:
            self._open(job, choice, destination, now)
        elif choice is Wait.WORKER:
            self._wait_for_worker(job)
        elif choice is Wait.NO_HOST:
            self._defer(job, destination, now, label)
        else:
            self._park(job, destination)
            if job.put_backs >= FRESH_AFTER:
                self._end_an_idle_one(destination)
            elif choice is Wait.LIMIT:
                self._end_one_of_others(destination)

    def _give(self, job: Job, connection: Connection) -> None:
        """Queue a job on a connection, which begins if it was idle."""
        if job.concurrency is not None:
            job.concurrency.add(connection)
        host = connection.host
        was_idle = connection.is_idle
        host.add_job(connection, job)
        if was_idle:
            self.pool.woke(connection)
            carrier = connection.carrier
            assert carrier is not None
            carrier.begin()
        elif connection.jobs > self.limits.backlog:
            self._crowded[host] = None

    def _open(self, job: Job, host: Host, destination: Destination, now: float) -> None:
        if self.pool.is_full or now < self._paused_until:
            self._wait_for_worker(job)
            return
        limits = destination.limits
        assert limits is not None
        connection = self.destdb.connect(host, limits.mx_set, now)
        self.pool.opened()
        self._give(job, connection)
        self._owner.open_connection(connection, destination)

    def _wait_for_worker(self, job: Job) -> None:
        self.line.add(job)
        if job.concurrency is not None:
            job.concurrency.wait()
        pool = self.pool
        if pool.is_full and pool.idle and pool.soon_free < len(self.line) and pool.allows(job.concurrency):
            carrier = next(iter(pool.idle)).carrier  # the one that has been idle longest makes room
            assert carrier is not None
            carrier.quit()

    def _end_an_idle_one(self, destination: Destination) -> None:
        """Make room for a fresh connection: an idle one of these hosts ends, if none ends already."""
        if any(host.has_leaving for host in destination.labels):
            return
        for host in destination.labels:
            if host.idle:
                carrier = next(iter(host.idle)).carrier
                assert carrier is not None
                carrier.quit()
                return

    def _end_one_of_others(self, destination: Destination) -> None:
        """Make room at the limits of these hosts: an idle connection of another profile ends, if none ends already."""
        for host in destination.labels:
            if host.endpoint.connections == host.connections:  # the usual case: there are no others
                continue
            others = [other for other in self.destdb.hosts_at(host.endpoint) if other is not host]
            if any(other.has_leaving for other in others):
                return
            idle = next((next(iter(other.idle)) for other in others if other.idle), None)
            if idle is not None:
                assert idle.carrier is not None
                idle.carrier.quit()
                return

    def _defer(self, job: Job, destination: Destination, now: float, label: bytes) -> None:
        known_for_s = destination.dead_for_s(now) if label == HOST_NONE else None
        self._owner.defer(job, destination, destination.last_reply(), label, known_for_s)

    def _park(self, job: Job, destination: Destination) -> None:
        destination.parked.add(job)
        self._parked.add(destination)

    def _unpark(self, destination: Destination, now: float) -> bool:
        """Place a parked job. Whether it got a place, and another one is parked."""
        parked = destination.parked
        before = len(parked)
        job = parked.take(_any)
        if job is None:
            return False
        if destination.located_until <= now:
            self.place(job, destination, now)
        else:
            self._place(job, destination, now, HOST_NONE)
        if not parked:
            self._parked.remove(destination)
        if len(parked) < before:
            return bool(parked)
        parked.restore(job)
        return False

    # ------------------------------------------------------------------ called for connections

    def next_job(self, connection: Connection, now: float) -> Job | None:
        """Take the next job to begin on this connection; None: there is none."""
        if not self._has_rates:
            queue = connection.queue
            if not queue:
                return self._next_job(connection, now)
            connection.host.queued -= 1
            connection.begun += 1
            return queue.popleft()
        while (job := self._next_job(connection, now)) is not None:
            destination = self.destinations[job.next_hop]
            if _may_send(job, destination, now, is_sent=True):
                return job
            self.end_job(job, connection)
            self._park(job, destination)
        return None

    def _next_job(self, connection: Connection, now: float) -> Job | None:
        host = connection.host
        if connection.queue:
            return host.take_first(connection)
        if self._parked:
            for destination in self._parked.at(host):
                self._unpark(destination, now)
                if connection.queue:
                    return host.take_first(connection)
        if host.queued and not connection.jobs:
            self._take_over(connection)
            if connection.queue:
                return host.take_first(connection)
        return None

    def _take_over(self, connection: Connection) -> None:
        """Take a job that has not begun from the most crowded connection of the host, from one without room, or from one of
        the oldest."""
        host = connection.host
        full = host.most_crowded() or host.newest_below(self.limits.backlog + 1)
        for other in (*(() if full is None else (full,)), *host.oldest(LOOKED_AT)):
            if other.queue and other is not connection and other.queue[0].put_backs < FRESH_AFTER:
                job = other.queue[0]
                self._take_away(job, other)
                if job.concurrency is not None:
                    job.concurrency.add(connection)
                host.add_job(connection, job)
                return

    def _take_away(self, job: Job, connection: Connection) -> None:
        """Take a job that has not begun from a connection."""
        connection.host.take_away(connection, job)
        self._remove_worker(job, connection)

    def _remove_worker(self, job: Job, connection: Connection) -> None:
        concurrency = job.concurrency
        if concurrency is not None and concurrency.remove(connection) and concurrency.waiting:
            self._owner.want_service()

    def end_job(self, job: Job, connection: Connection) -> None:
        """Note that a job which had begun is settled, or put back. It is in no place now."""
        host = connection.host
        host.end_job(connection)
        if job.concurrency is not None:
            self._remove_worker(job, connection)
        if self._parked and host in self._parked:
            self._owner.want_service()

    def must_yield(self, connection: Connection) -> bool:
        """Whether a connection ends after its transaction, so that its worker becomes free: the message of its next job has
        more than its share, and one with fewer workers waits in the line."""
        own = connection.queue[0].concurrency if connection.queue else None
        if own is None or not self.pool.exceeds(own):
            return False
        count = len(own.workers) - 1
        return self.line.has(lambda job: job.concurrency is None or len(job.concurrency.workers) < count)

    def rest(self, connection: Connection) -> None:
        """Note that a connection without jobs is kept idle: its worker is free."""
        self._idle_number += 1
        connection.host.rest(connection, self._idle_number)
        self.pool.rested(connection)
        if self.line or self._crowded:
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

    def leave(self, connection: Connection) -> None:
        """Note that a connection takes no more jobs; those that have not begun are placed anew. Harmless when repeated."""
        self._leave(connection, HOST_NONE)

    def _leave(self, connection: Connection, label: bytes) -> None:
        if connection.is_leaving:
            return
        if connection.is_idle:
            self.pool.woke(connection)
        self.pool.left()
        self.destdb.leave(connection)
        self._make_homeless(connection, label)
        self._owner.want_service()

    def _make_homeless(self, connection: Connection, label: bytes) -> None:
        while connection.queue:
            job = connection.queue[0]
            self._take_away(job, connection)
            self._homeless.append((job, label))

    def close(self, connection: Connection, now: float) -> None:
        """Note that a connection is closed: its worker is free."""
        self.destdb.close(connection, now)
        self.pool.closed()
        if self.line or self._crowded or self._parked:
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
        return self.pool.allows(job.concurrency)

    def _spread(self, now: float) -> None:
        """Let jobs of crowded connections make others, or go to some with fewer jobs, where limits and workers allow it.
        Each one that moves makes the crowd smaller."""
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
        While nothing was refused its set may have one connection more for them, once in `PATIENCE_S`."""
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
        if self.pool.is_full or now < self._paused_until:
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

    def pause(self, until: float) -> None:
        """Make no connections until then."""
        self._paused_until = until

    def drain(self) -> list[Job]:
        """Remove and return all jobs that have not begun."""
        jobs: list[Job] = [job for job, _ in self._homeless]
        self._homeless.clear()
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
                while connection.queue:
                    job = connection.queue[0]
                    self._take_away(job, connection)
                    jobs.append(job)
        return jobs

    def excess(self, reserve: int, room: int, now: float) -> list[tuple[Job, Destination]]:
        """Remove and return jobs that can't be tried now, while there is room for less than `reserve` entries: those that
        wait for a limit or a trial, and of slow destinations those beyond as many entries as there is room; without a
        session, all. A job that has not waited for as long itself stays: a destination is slow, too, while the jobs of a big
        message wait for workers."""
        found: list[tuple[Job, Destination]] = []
        for destination in list(self.destinations.values()):
            if room >= reserve:
                break
            is_slow = destination.slow_s(now) > SLOW_AFTER_S
            for job in self._drain_parked(destination) if is_slow or destination.parked else ():
                room += len(job.entries)
                found.append((job, destination))
            if is_slow:
                held = destination.entries
                for job, connection in self._not_begun(destination):
                    if now - job.queued_at <= SLOW_AFTER_S:
                        continue
                    if held <= room and (destination.is_served or room >= reserve):
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

    def _not_begun(self, destination: Destination) -> list[tuple[Job, Connection | None]]:
        """Its jobs that wait for its hosts or on connections, the last ones first."""
        next_hop = destination.next_hop
        found: list[tuple[Job, Connection | None]] = [(job, None) for job in reversed(destination.unlocated)]
        for host in destination.labels:
            for connection in host.with_jobs():
                found += [(job, connection) for job in reversed(connection.queue) if job.next_hop == next_hop]
        return found

    @property
    def has_work(self) -> bool:
        """Whether a job waits anywhere but on a connection."""
        return bool(self.line or self._parked or self._homeless or self._unlocated)


def _may_send(job: Job, destination: Destination, now: float, *, is_sent: bool = False) -> bool:
    """Whether the rate of its destination lets a job go now. `is_sent`: count it if so."""
    rate = destination.limits.rate if destination.limits is not None else None
    if rate is None:
        return True
    may_go = rate.may_send(now, len(job.entries))
    if may_go and is_sent:
        rate.note_sent(now, len(job.entries))
    return may_go


def _any(_: Job) -> bool:
    return True
