"""Placing: gives each job a place (pure).

*Rules*
- A job is in one place: the queue of a connection, the line for a worker, its destination's own line (it waits for a limit
  or a trial), the look-up of its destination, or under way.
- While no worker is free, an idle connection ends for a job that waits in the line.
- Where a host's limit is reached, an idle connection of another profile ends: nothing else would use it.
- A job whose hosts are all dead has been tried.

*Not here*: which place that is (`choice`); what happens to it there (`handing_out`, `schedule`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mailismus.deliver.jobs.concurrency import Concurrency
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.routes.route import HOST_NONE
from mailismus.deliver.schedule.choice import FRESH_AFTER, PickOne, Wait, choose, ride_at_limit
from mailismus.deliver.schedule.destdb import DestDb
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.destinations import KnownDestinations
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.line import Line
from mailismus.deliver.schedule.parked import ParkedDestinations
from mailismus.deliver.schedule.pool import Pool
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.mail.reply import Reply


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


class LeftJobs(NamedTuple):
    """The jobs of a connection that ends, and until when they may wait for its place."""

    jobs: Sequence[Job]
    until: float


class Placing:
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
        self._left: dict[Connection, LeftJobs] = {}
        """Jobs of connections that end and are not closed yet."""
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

    # ------------------------------------------------------------------ placing

    def place(self, job: Job, destination: Destination, now: float, label: bytes = HOST_NONE) -> None:
        """Give a job a place. `label`: the host at which it was tried just now."""
        if destination.located_until > now:
            sole, limits = destination.sole, destination.limits
            if sole is not None and limits is not None and not self._has_rates and job.put_backs < FRESH_AFTER:
                connection = sole.newest_with_room()
                if connection is None and sole.idle and job.concurrency is None:
                    connection = next(reversed(sole.idle))
                elif connection is None and sole.trial is None and not sole.is_dead(now):
                    connection = ride_at_limit(sole, limits, now)
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
        if self._has_rates and not may_send(job, destination, now):
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
            self.pool.charge(connection, job)
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
        self.pool.charge(connection, job)
        self._give(job, connection)
        self._owner.open_connection(connection, destination)

    def _wait_for_worker(self, job: Job) -> None:
        self.line.add(job)
        if job.concurrency is not None:
            job.concurrency.wait()
        pool = self.pool
        if pool.is_full and pool.idle and pool.soon_free < len(self.line) and pool.allows_job(job):
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

    def pause(self, until: float) -> None:
        """Make no connections until then."""
        self._paused_until = until

    # ------------------------------------------------------------------ jobs that wait for a limit or a trial

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


def may_send(job: Job, destination: Destination, now: float, *, is_sent: bool = False) -> bool:
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
