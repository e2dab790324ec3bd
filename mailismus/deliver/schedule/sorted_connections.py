"""Sorted connections: those of one host, by activity, room and number of jobs (pure).

*Rules*
- A connection that is listed is *active* or *idle*. Active ones have *room* below the backlog, else they are *crowded*.
- The newest connection with room, and the newest one with fewer jobs than another, are found without looking at all of many:
  of a few by looking at each, which costs less than to keep them sorted, of more by the different numbers of jobs.

*Not here*: connections that get no jobs, on trial or leaving, and what is known of their host (`host`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.schedule.limits import ScheduleLimits

_UNSORTED = -1
"""The place of a connection among the crowded ones before anybody asks for it."""


class SortableConnection(Protocol):
    """A connection as it is sorted: as in `host.Connection`."""

    number: int
    queue: deque[Job]
    jobs: int
    place: int
    begun: int
    is_idle: bool
    is_standing: bool
    is_listed: bool

    def set_listed(self, *, is_listed: bool) -> None:
        """Note whether it gets jobs."""

    def rest(self, idle_number: int) -> None:
        """Become idle."""

    def wake(self) -> None:
        """Become active."""


C = TypeVar("C", bound=SortableConnection)


class SortedConnections(Generic[C]):
    """The connections of a host that get jobs, and their jobs."""

    __slots__ = ("_by_jobs", "_limits", "_listed", "_moved", "_numbers", "_room", "idle", "queued")

    def __init__(self, limits: ScheduleLimits) -> None:
        self._limits = limits
        self._listed: dict[int, C] = {}
        self._numbers: list[int] = []
        """Numbers of the active connections, ascending."""
        self._room: list[int] = []
        """Of these, those with room, and some that had it when they were sorted in."""
        self._by_jobs: dict[int, list[int]] = {}
        """The others, by how many jobs they have, or had when they were sorted in."""
        self._moved: dict[C, None] = {}
        """Of these, those that have another number now."""
        self.idle: dict[C, None] = {}
        """In the order in which they became idle."""
        self.queued = 0
        """Jobs that wait in the queues of its connections."""

    def newest_with_room(self) -> C | None:
        """The newest active connection with room."""
        room, listed, backlog = self._room, self._listed, self._limits.backlog
        while room:
            connection = listed[room[-1]]
            if connection.jobs < backlog:
                return connection
            room.pop()
            self._crowd(connection)
        return None

    def newest(self) -> C | None:
        """The newest active connection."""
        numbers = self._numbers
        return self._listed[numbers[-1]] if numbers else None

    def newest_below(self, jobs: int) -> C | None:
        """The newest active connection with fewer jobs than this, of those without room."""
        if len(self._numbers) > self._limits.looked_at:
            return self._newest_sorted_below(jobs)
        listed, backlog = self._listed, self._limits.backlog
        for number in reversed(self._numbers):
            if backlog <= listed[number].jobs < jobs:
                return listed[number]
        return None

    def _newest_sorted_below(self, jobs: int) -> C | None:
        for number in [number for number in self._room if self._listed[number].jobs >= self._limits.backlog]:
            _remove(self._room, number)
            self._crowd(self._listed[number])
        if self._moved:
            self._sort_in()
        found = max((numbers[-1] for count, numbers in self._by_jobs.items() if count < jobs), default=0)
        return self._listed[found] if found else None

    def most_crowded(self) -> C | None:
        """The connection with most jobs, the oldest one of several, if it has more than its backlog."""
        if len(self._numbers) > self._limits.looked_at:
            return self._most_crowded_sorted()
        found, most = None, self._limits.backlog
        for number in self._numbers:
            connection = self._listed[number]
            if connection.jobs > most:
                found, most = connection, connection.jobs
        return found

    def _most_crowded_sorted(self) -> C | None:
        if self._moved:
            self._sort_in()
        most = max(self._by_jobs, default=0)
        return self._listed[self._by_jobs[most][0]] if most > self._limits.backlog else None

    def listed(self) -> list[C]:
        """Active and idle connections."""
        return list(self._listed.values())

    def being_made(self) -> list[C]:
        """Active connections without a session yet."""
        return [connection for connection in self._listed.values() if not connection.is_standing]

    def oldest(self, count: int) -> list[C]:
        """Some active connections with room, the oldest ones first."""
        backlog = self._limits.backlog
        with_room = (one for number in self._room if (one := self._listed[number]).jobs < backlog)
        return list(islice(with_room, count))

    # ------------------------------------------------------------------ connections

    def list(self, connection: C) -> None:
        """Make a connection active: it gets jobs from now on."""
        connection.set_listed(is_listed=True)
        self._listed[connection.number] = connection
        insort(self._numbers, connection.number)
        self._enter(connection)

    def unlist(self, connection: C) -> None:
        """Give a connection no more jobs."""
        if connection.is_listed:
            connection.set_listed(is_listed=False)
            if connection.is_idle:
                connection.wake()
                del self.idle[connection]
            else:
                _remove(self._numbers, connection.number)
                self._leave(connection)
            del self._listed[connection.number]

    def rest(self, connection: C, idle_number: int) -> None:
        """Make an active connection without jobs idle."""
        connection.rest(idle_number)
        self.idle[connection] = None
        _remove(self._numbers, connection.number)
        self._leave(connection)

    # ------------------------------------------------------------------ jobs

    def add_job(self, connection: C, job: Job) -> None:
        """Add a job to the queue of a connection: the only job of its message goes before every second one of messages with
        several, so that it does not wait for all of a large envelope, nor the envelope for ever."""
        queue = connection.queue
        if job.concurrency is not None or not queue or queue[-1].concurrency is None:
            queue.append(job)
        else:
            queue.insert(2 * sum([queued.concurrency is None for queued in queue]), job)
        self.queued += 1
        connection.jobs += 1
        if connection.is_idle:
            connection.is_idle = False
            del self.idle[connection]
            insort(self._numbers, connection.number)
            self._enter(connection)
        elif connection.place > 0:
            self._moved[connection] = None
        elif not connection.place and connection.jobs > self._limits.backlog and connection.is_listed:
            _remove(self._room, connection.number)
            self._crowd(connection)

    def take_first(self, connection: C) -> Job:
        """Take the first queued job, to begin its transaction: it counts until `end_job`."""
        self.queued -= 1
        connection.begun += 1
        return connection.queue.popleft()

    def take_away(self, connection: C, job: Job) -> None:
        """Take a queued job away from a connection."""
        connection.queue.remove(job)
        self.queued -= 1
        self.end_job(connection)

    def take_all(self, connection: C) -> Sequence[Job]:
        """Take all queued jobs away from a connection."""
        taken = list(connection.queue)
        connection.queue.clear()
        self.queued -= len(taken)
        connection.jobs -= len(taken)
        if connection.place:
            self._note_fewer(connection)
        return taken

    def end_job(self, connection: C) -> None:
        """Stop counting a job that has ended."""
        connection.jobs -= 1
        if connection.place:
            self._note_fewer(connection)

    def _note_fewer(self, connection: C) -> None:
        """Note that a crowded connection has fewer jobs now."""
        if connection.jobs < self._limits.backlog:
            self._leave(connection)
            insort(self._room, connection.number)
        elif connection.place > 0:
            self._moved[connection] = None

    def relist(self) -> None:
        """Sort all connections anew: the backlog has changed."""
        self._room.clear()
        self._by_jobs.clear()
        self._moved.clear()
        for number in self._numbers:
            self._enter(self._listed[number])

    def _crowd(self, connection: C) -> None:
        """Note that a connection which had room has none. Who is asked for next sorts it in."""
        connection.place = _UNSORTED
        self._moved[connection] = None

    def _enter(self, connection: C) -> None:
        if connection.jobs < self._limits.backlog:
            connection.place = 0
            insort(self._room, connection.number)
        else:
            self._sort_in_crowd(connection)

    def _sort_in_crowd(self, connection: C) -> None:
        jobs = connection.place = connection.jobs
        insort(self._by_jobs.setdefault(jobs, []), connection.number)

    def _leave(self, connection: C) -> None:
        self._moved.pop(connection, None)
        number, place = connection.number, connection.place
        connection.place = 0
        if not place:
            _remove(self._room, number)
        elif place > 0:
            numbers = self._by_jobs[place]
            _remove(numbers, number)
            if not numbers:
                del self._by_jobs[place]

    def _sort_in(self) -> None:
        """Sort in the connections whose number of jobs has changed."""
        for connection in list(self._moved):
            self._leave(connection)
            self._enter(connection)


def _remove(numbers: list[int], number: int) -> None:
    """Remove a number from an ascending list."""
    del numbers[bisect_left(numbers, number)]
