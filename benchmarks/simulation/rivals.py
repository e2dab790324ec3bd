"""Two plain schedules to compare with, between the same receivers: first come first served, and an equal share.

Both know dead hosts as ours does, use connections again, and let all domains with the same hosts share theirs. Neither knows
windows, senders, messages, or shares of the room.

    first come    a free worker goes to the job that has waited longest and may have a connection
    equal share   each set of MX hosts has so many connections at most; sets with waiting jobs take turns

A session that has ended its job takes the oldest one that waits for its hosts, whatever others wait for.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from typing import Any
from unittest.mock import patch

from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import DestinationLimits, LimitsOf, MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.routes.route import HOST_NONE
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import NO_LIMIT
from mailismus.deliver.schedule.line import Line
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.deliver.schedule.shares import PoolShares
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Message


class FixedWindow(Window):
    """A window that follows nothing."""

    __slots__ = ()

    def allows(self, open_connections: int, now: float) -> bool:
        return open_connections < self.size

    def note_delivered(self, open_connections: int) -> bool:
        return False

    def lend(self, now: float) -> bool:
        return False

    def note_cut(self, now: float, began_at: float, reply: Reply | None = None, open_connections: int | None = None) -> bool:
        return False

    def note_refused(self, now: float, standing: int, reply: Reply | None = None) -> None:
        """Nothing."""

    def begin_anew(self, now: float, wait_s: float = 0.0) -> None:
        """Nothing."""


class FixedLimits(LimitsOf):
    """Limits of sets that never change. `most`: connections of a set."""

    most = NO_LIMIT

    def hold(
        self, domain: bytes, hosts: Sequence[str], port: int, patterns: tuple[bytes, ...] = (), *, now: float = 0.0
    ) -> DestinationLimits:
        with patch("mailismus.deliver.limits.sets.Window", lambda limit, chance: FixedWindow(limit, chance, self.most)):
            return super().hold(domain, hosts, port, patterns, now=now)


class PlainSchedule(Schedule):
    """Jobs wait by set of hosts, in the order in which they came. `is_in_turns`: sets take turns, else the set of the oldest
    job is first."""

    is_in_turns = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: dict[MxSet, deque[tuple[int, Job]]] = {}
        """Jobs by set, numbered in the order in which they came."""
        self._order: list[tuple[int, int, MxSet]] = []
        """A heap of sets with waiting jobs: the number of the oldest job, or of the turn. A set that may have no connection
        now is not in it until one of its connections stands or ends."""
        self._ordered: set[MxSet] = set()
        """Those in it."""
        self._count = 0

    @property
    def has_work(self) -> bool:
        return super().has_work or bool(self._waiting)

    def _place(self, job: Job, destination: Destination, now: float, label: bytes) -> None:
        limits = destination.limits
        assert limits is not None
        mx_set = limits.mx_set
        waiting = self._waiting.get(mx_set)
        if waiting is None:
            if self._begin(job, destination, now, label):
                return
            waiting = self._waiting[mx_set] = deque()
            self._line_up(mx_set)
            self._owner.want_service()
        self._count += 1
        waiting.append((self._count, job))

    def _line_up(self, mx_set: MxSet) -> None:
        """Let a set with waiting jobs have its turn."""
        if mx_set not in self._ordered:
            self._ordered.add(mx_set)
            self._count += 1
            waiting = self._waiting[mx_set]
            number = self._count if self.is_in_turns or not waiting else waiting[0][0]
            heappush(self._order, (number, self._count, mx_set))

    def _wake(self, mx_set: MxSet) -> None:
        """Note that a set may perhaps have a connection."""
        if mx_set in self._waiting:
            self._line_up(mx_set)
        if self._waiting:
            self._owner.want_service()

    def _begin(self, job: Job, destination: Destination, now: float, label: bytes) -> bool:
        """Let a job begin, over an idle connection or another one. False: it has to wait. A job that has no host is over."""
        limits = destination.limits
        assert limits is not None
        is_trial = False
        for level in destination.levels:
            working = [host for host in level if not host.is_dead(now) and host.trial is None]
            is_trial = is_trial or any(host.trial is not None for host in level)
            if not working:
                continue
            idle = [next(reversed(host.idle)) for host in working if host.idle]
            if idle:
                self._give(job, max(idle, key=lambda connection: connection.idle_number))
                return True
            most = limits.server_limit or NO_LIMIT
            free = [host for host in working if host.connections < most]
            if not free or self.pool.is_full or not limits.window.allows(limits.mx_set.connections, now):
                return False
            fewest = min(host.connections for host in free)
            self._open(job, self._pick([host for host in free if host.connections == fewest]), destination, now)
            return True
        if not is_trial:
            self._defer(job, destination, now, label)
        return not is_trial

    def _next_job(self, connection: Connection, now: float) -> Job | None:
        if connection.queue:
            return connection.host.take_first(connection)
        waiting = self._waiting.get(connection.mx_set)
        if not waiting:
            return None
        _, job = waiting.popleft()
        if not waiting:
            del self._waiting[connection.mx_set]
        self._give(job, connection)
        return connection.host.take_first(connection)

    def must_yield(self, connection: Connection, now: float) -> bool:
        return False

    def rest(self, connection: Connection) -> None:
        super().rest(connection)
        self._wake(connection.mx_set)

    def close(self, connection: Connection, now: float) -> None:
        super().close(connection, now)
        self._wake(connection.mx_set)

    def stand(self, connection: Connection, now: float) -> None:
        super().stand(connection, now)
        self._wake(connection.mx_set)

    def serve(self, now: float) -> None:
        for _ in range(len(self._homeless)):
            job, label = self._homeless.popleft()
            destination = self.destinations[job.next_hop]
            if label != HOST_NONE and destination.labels and not destination.dead_for_s(now):
                reply = Reply(451, b"4.4.1", b"no session now")
                self._owner.defer(job, destination, reply, label, None)  # refused by a host that is not dead
            else:
                self.place(job, destination, now, label)
        while self._order and not self.pool.is_full:
            self._serve_first(now)
        while self._order and self.pool.idle and self.pool.soon_free < len(self._order):
            carrier = next(iter(self.pool.idle)).carrier  # it makes room
            assert carrier is not None
            carrier.quit()

    def _serve_first(self, now: float) -> None:
        """Let the first waiting job begin, or its set wait until it may have a connection."""
        mx_set = heappop(self._order)[2]
        self._ordered.discard(mx_set)
        waiting = self._waiting.get(mx_set)
        if not waiting:
            return
        job = waiting[0][1]
        if self._begin(job, self.destinations[job.next_hop], now, HOST_NONE):
            waiting.popleft()
            if waiting:
                self._line_up(mx_set)
            else:
                del self._waiting[mx_set]

    def relieve(self, connection: Connection, now: float) -> None:
        """Nothing: jobs stay where they are."""

    def excess(self, reserve: int, room: int, now: float) -> list[tuple[Job, Destination]]:
        return []


class TurnsSchedule(PlainSchedule):
    """The same in turns of sets."""

    is_in_turns = True


class Arrivals(Line):
    """A line in the order of arrival."""

    def __init__(self, *, is_by_job: bool = False) -> None:
        super().__init__(is_by_job=is_by_job)
        self._jobs: OrderedDict[Job, None] = OrderedDict()

    def add(self, job: Job) -> None:
        self._jobs[job] = None
        self.count += 1

    def take(self, may_go: Callable[[Job], bool], may_send: Callable[[bytes], bool] | None = None) -> Job | None:
        if not self._jobs or not may_go(next(iter(self._jobs))):
            return None
        self.count -= 1
        return self._jobs.popitem(last=False)[0]

    def remove(self, job: Job) -> bool:
        if job not in self._jobs:
            return False
        del self._jobs[job]
        self.count -= 1
        return True


class NoShares(PoolShares):
    """Every free worker is for the first one."""

    def allows(self, message: Message, free: int) -> bool:
        return free > 0

    def allows_sender(self, sender: bytes, free: int) -> bool:
        return free > 0


class NoRoomShares(HeldEntries):
    """The room is for whoever comes first."""

    def shares(self, limit: int) -> None:
        return None


@contextmanager
def plain(most: int = 0, *, is_in_turns: bool = False) -> Iterator[None]:
    """While it is entered, delivery tasks are made with a plain schedule. `most`: connections of a set of hosts; 0: no
    limit."""
    limits = type("FixedLimits", (FixedLimits,), {"most": most or NO_LIMIT})
    with ExitStack() as stack:
        for name, replacement in {
            "mailismus.deliver.sessions.all_sessions.Schedule": TurnsSchedule if is_in_turns else PlainSchedule,
            "mailismus.deliver.sessions.all_sessions.LimitsOf": limits,
            "mailismus.deliver.lookups.Line": Arrivals,
            "mailismus.deliver.lookups.PoolShares": NoShares,
            "mailismus.deliver.local.deliveries.PoolShares": NoShares,
            "mailismus.deliver.local.turns.Line": Arrivals,
            "mailismus.deliver.task.HeldEntries": NoRoomShares,
        }.items():
            stack.enter_context(patch(name, replacement))
        yield
