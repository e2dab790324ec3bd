"""The choice: the connection or the host for one job, in a fixed order. Pure.

Over the hosts of the lowest preference; over the next ones only if none of these works, that is if none may be tried now:

    1  the newest active connection with fewer jobs than the backlog
    2  the message has its share of the workers: a free ride, or wait for a worker
    3  the connection that became idle last
    4  no worker is left: a free ride, or wait for a worker
    5  a host that was never used, at random
    6  the host whose last connection, now closed, was made first
    7  a host that was dead and is due, at random
    8  one more at a host with the fewest connections, at random
    9  all have reached their limit: a free ride, or wait for the limit

A job that was begun and not tried several times takes steps 5 to 8 alone: over a connection on which it is the first.

A *free ride* goes to the newest active connection that has fewer jobs than the newest one, else to the newest one. Steps 5
to 8 take hosts only whose own limit and whose set's limit allow another connection. A host on trial works for the job of the
trial alone: others use the next preference, and if that does not work either, wait for the trial.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import DestinationLimits
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import NO_LIMIT
from mailismus.deliver.schedule.pool import Pool


class Wait(enum.Enum):
    """What a job without a connection waits for."""

    WORKER = "worker"
    LIMIT = "limit"
    TRIAL = "trial"
    NO_HOST = "no host"
    """Nothing: all hosts are dead."""

    __hash__ = object.__hash__


_WORKER, _LIMIT, _TRIAL, _NO_HOST = Wait.WORKER, Wait.LIMIT, Wait.TRIAL, Wait.NO_HOST

Choice = Connection | Host | Wait
"""The connection that gets the job, the host to connect to, or what to wait for."""

PickOne = Callable[[Sequence[Host]], Host]
"""One of these at random."""


FRESH_AFTER = 2
"""A job that was put back so often goes over a connection without another job before it: some hosts end their sessions after
one message."""


def choose(job: Job, destination: Destination, pool: Pool, now: float, pick: PickOne) -> Choice:
    """The choice for this job. The hosts of its destination are known."""
    limits, sole = destination.limits, destination.sole
    assert limits is not None
    if sole is not None and job.put_backs < FRESH_AFTER and (known := _choose_at_once(sole, limits, now)) is not None:
        return known
    is_trial = False
    for level in destination.levels:
        working = [host for host in level if not host.is_dead(now) and host.trial is None]
        if working:
            return _choose_of(working, job, limits, pool, now, pick)
        is_trial = is_trial or any(host.trial is not None for host in level)
    return _TRIAL if is_trial else _NO_HOST


def _choose_at_once(sole: Host, limits: DestinationLimits, now: float) -> Connection | None:
    """The choice at the only host of the lowest preference, where it depends on nothing else: steps 1 and 9.
    None: it does."""
    if sole.is_dead(now) or sole.trial is not None:
        return None
    return sole.newest_with_room() or ride_at_limit(sole, limits, now)


def ride_at_limit(sole: Host, limits: DestinationLimits, now: float) -> Connection | None:
    """The free ride at the only host of the lowest preference, which works, and none of whose connections has room, while
    limits allow no other one. None: they do, or there is none. A backlog makes this choice more than once for each
    message."""
    newest = sole.newest()
    if newest is None or sole.idle:
        return None
    if sole.endpoint.connections < (limits.server_limit or NO_LIMIT) and _with_place((sole,), limits, now):
        return None
    return sole.newest_below(newest.jobs) or newest


def _choose_of(hosts: Sequence[Host], job: Job, limits: DestinationLimits, pool: Pool, now: float, pick: PickOne) -> Choice:
    if job.put_backs >= FRESH_AFTER:
        return _choose_fresh(hosts, limits, pool, now, pick)
    with_room = [found for host in hosts if (found := host.newest_with_room()) is not None]
    if with_room:
        return max(with_room, key=_age)
    idle = [next(reversed(host.idle)) for host in hosts if host.idle]
    free = [] if idle else _with_place(hosts, limits, now)
    if (idle or free) and pool.allows_job(job):  # what limits allow is asked first: it costs less
        if idle:
            return max(idle, key=_idle_since)
        if pool.has_worker:
            return _choose_host(free, pick)
    ride = _free_ride(hosts)
    if ride is not None:
        return ride
    return _LIMIT if pool.has_worker and pool.allows_job(job) else _WORKER


def _choose_fresh(hosts: Sequence[Host], limits: DestinationLimits, pool: Pool, now: float, pick: PickOne) -> Choice:
    """A connection that is being made and has no job yet, or the host for one; else wait for it."""
    fresh = [found for host in hosts for found in host.being_made() if not found.jobs]
    if fresh:
        return max(fresh, key=_age)
    if not pool.has_worker:
        return _WORKER
    free = _with_place(hosts, limits, now)
    return _choose_host(free, pick) if free else _LIMIT


def _with_place(hosts: Sequence[Host], limits: DestinationLimits, now: float) -> list[Host]:
    """The hosts to which limits allow one more connection."""
    if not limits.window.allows(limits.mx_set.connections, now):
        return []
    most = limits.server_limit or NO_LIMIT
    return [host for host in hosts if host.may_have_more(most, now, limits.scope)]


def _choose_host(free: Sequence[Host], pick: PickOne) -> Host:
    """The one of these to connect to."""
    unused = [host for host in free if host.is_unused]
    if unused:
        return pick(unused)
    closed = [host for host in free if not host.connections and not host.failures]
    if closed:
        return min(closed, key=lambda host: host.made_at)
    due = [host for host in free if host.failures]
    if due:
        return pick(due)
    fewest = min(host.connections for host in free)
    return pick([host for host in free if host.connections == fewest])


def _free_ride(hosts: Sequence[Host]) -> Connection | None:
    """The active connection that others have; None: there is none. None of them has room."""
    newest = max((found for host in hosts if (found := host.newest()) is not None), key=_age, default=None)
    if newest is None:
        return None
    fewer = [found for host in hosts if (found := host.newest_below(newest.jobs)) is not None]
    return max(fewer, key=_age, default=newest)


def _age(connection: Connection) -> int:
    return connection.number


def _idle_since(connection: Connection) -> int:
    return connection.idle_number
