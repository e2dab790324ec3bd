"""The choice as slow plain code: everything is a list, which is sorted anew for each question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

PUT_BACKS = 2
"""A job that was put back so often gets a connection without another job."""


@attrs.define(eq=False)
class PlainConnection:
    """A connection that is not closed."""

    number: int
    host: PlainHost
    jobs: int = 0
    is_standing: bool = False
    idle_since: int | None = None
    is_leaving: bool = False
    is_trial: bool = False
    sender: bytes | None = None
    """For whose small message it was made, or used again after it was idle."""

    @property
    def is_active(self) -> bool:
        """Whether it gets jobs, and is not idle."""
        return not self.is_leaving and not self.is_trial and self.idle_since is None

    @property
    def is_idle(self) -> bool:
        return not self.is_leaving and self.idle_since is not None


@attrs.define(eq=False)
class PlainHost:
    """A host. `made_at`: of its last closed connection, if that is remembered. `window`: whether its own window allows
    another connection beside so many."""

    name: str
    window: Callable[[int], bool]
    connections: list[PlainConnection] = attrs.Factory(list)
    made_at: float | None = None
    has_died: bool = False
    dead_until: float = 0.0

    @property
    def active(self) -> list[PlainConnection]:
        return [one for one in self.connections if one.is_active]

    @property
    def is_on_trial(self) -> bool:
        return any(one.is_trial for one in self.connections)


@attrs.define
class PlainRequest:
    """What the choice depends on beside the hosts. `set_allows`: whether the window of the set allows one more."""

    now: float
    workers: int
    """Workers of the message."""
    sender: bytes
    recipients: int
    """Of the message."""
    put_backs: int
    backlog: int
    max_concurrency: int
    scale: int
    max_connections: int
    all_hosts: Sequence[PlainHost]
    set_allows: bool
    server_limit: int | None
    pick: Callable[[Sequence[PlainHost]], PlainHost]


PlainChoice = PlainConnection | PlainHost | str


def plain_choose(levels: Sequence[Sequence[PlainHost]], request: PlainRequest) -> PlainChoice:
    """The choice: a connection, a host, or what to wait for."""
    for hosts in levels:
        working = [host for host in hosts if host.dead_until <= request.now and not host.is_on_trial]
        if working:
            return _of_working(working, request)
    return "trial" if any(host.is_on_trial for hosts in levels for host in hosts) else "no host"


def _of_working(hosts: Sequence[PlainHost], request: PlainRequest) -> PlainChoice:
    active = sorted((one for host in hosts for one in host.active), key=lambda one: -one.number)
    pool = [one for host in request.all_hosts for one in host.connections]
    has_worker = len(pool) < request.max_connections or any(one.is_idle for one in pool)
    if request.put_backs >= PUT_BACKS:
        for one in active:
            if not one.is_standing and one.jobs == 0:
                return one
        if not has_worker:
            return "worker"
        return _new_connection(hosts, request) or "limit"
    for one in active:
        if one.jobs < request.backlog:
            return one
    if not _allowed_new_worker(pool, request):
        return _free_ride(active) or "worker"
    idle = [one for host in hosts for one in host.connections if one.is_idle]
    if idle:
        return sorted(idle, key=lambda one: one.idle_since or 0)[-1]
    if not has_worker:
        return _free_ride(active) or "worker"
    return _new_connection(hosts, request) or _free_ride(active) or "limit"


def _allowed_new_worker(pool: Sequence[PlainConnection], request: PlainRequest) -> bool:
    free_workers = max(0, request.max_connections - len(pool)) + sum(one.is_idle for one in pool)
    max_message_concurrency = min(request.max_concurrency, max(1, request.max_connections // 2))
    if not (request.workers < max_message_concurrency or request.workers < request.scale * free_workers):
        return False
    if request.recipients > max_message_concurrency:
        return True
    workers_of_sender = sum(one.sender == request.sender for one in pool if not one.is_leaving and not one.is_idle)
    kept = min(20, request.max_connections // 5)
    if free_workers <= kept:
        return workers_of_sender < max(1, kept // 4)
    return workers_of_sender < max_message_concurrency or workers_of_sender < request.scale * free_workers


def _free_ride(active: Sequence[PlainConnection]) -> PlainConnection | None:
    """`active`: the newest one first."""
    for one in active:
        if one.jobs < active[0].jobs:
            return one
    return active[0] if active else None


def _new_connection(hosts: Sequence[PlainHost], request: PlainRequest) -> PlainHost | None:
    if not request.set_allows:
        return None
    free = [
        host
        for host in hosts
        if (request.server_limit is None or len(host.connections) < request.server_limit)
        and host.window(len(host.connections))
    ]
    without = [host for host in free if not host.connections]
    unused = [host for host in without if host.made_at is None and not host.has_died]
    closed = [host for host in without if host.made_at is not None and not host.has_died]
    retry = [host for host in free if host.has_died]
    if unused:
        return request.pick(unused)
    if closed:
        return sorted(closed, key=lambda host: host.made_at or 0.0)[0]
    if retry:
        return request.pick(retry)
    if free:
        by_count = sorted(free, key=lambda host: len(host.connections))
        return request.pick([host for host in free if len(host.connections) == len(by_count[0].connections)])
    return None
