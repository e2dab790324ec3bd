"""What a decision costs by the number of connections of one host: the time of `place` and `choose`, and what follows.

room      every connection has a job and takes more: the newest gets the next one; then one begins and one ends
crowded   every connection has twice its backlog, and no worker is left: a free ride; then a job ends, at each in turn
idle      every connection is idle: the one that was idle last gets the job, ends it, and is idle again
another   every connection has its backlog, and there are workers: the host for one more
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.simulation.run import settings_of
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.choice import choose
from mailismus.deliver.schedule.destdb import DestDb
from mailismus.deliver.schedule.destination import Destination, FoundHost
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message

COUNTS = (1, 50, 2500)
HOP = NextHop("mx.example", 25)
DECISIONS, REPEATS = 2000, 15
NOW = 1000.0


class _Session:
    """A session that does nothing."""

    def begin(self) -> None:
        """The caller goes on."""

    def quit(self) -> None:
        """Nothing ends here."""


class _Owner:
    """An owner of the schedule without sockets or names."""

    def __init__(self) -> None:
        self.opened: list[Connection] = []

    def open_connection(self, connection: Connection, destination: Destination) -> None:
        connection.carry(_Session())
        self.opened.append(connection)

    def locate(self, destination: Destination, job: Job, now: float) -> bool | Outcome:
        return True

    def defer(self, job: Job, destination: Destination, reply: Reply, label: bytes, known_for_s: float | None) -> None:
        raise AssertionError(reply)

    def want_service(self) -> None:
        """Nothing waits."""


class _Host:
    """One host with so many connections that stand, each with one job under way. `spare`: workers beyond these."""

    def __init__(self, connections: int, spare: int) -> None:
        limits = ScheduleLimits(max_connections=connections + spare, max_messages=1 << 30)
        destdb, owner = DestDb(limits), _Owner()
        limits_of = LimitsOf(settings_of(maxserverconnections=0))
        self.schedule = Schedule(destdb, limits_of, owner, _first)
        self.destination = Destination(HOP)
        self.destination.set_hosts(
            [FoundHost("mx.example", 10, destdb.find("192.0.2.1", 25))], limits_of.hold(b"a", ["mx"], 25)
        )
        self.destination.set_located(NOW + 1e6)
        assert self.destination.limits is not None
        self.destination.limits.mx_set.window.size = 1 << 30  # it has grown
        self._number = 0
        self.connections: list[Connection] = []
        self.under_way: dict[Connection, list[Job]] = {}
        for _ in range(connections):
            while len(owner.opened) == len(self.connections):
                self.place()
            connection = owner.opened[-1]
            self.connections.append(connection)
            self.under_way[connection] = []
            self.schedule.stand(connection, NOW)
        for connection in self.connections:
            while len(connection.queue):
                self.begin(connection)
            while len(self.under_way[connection]) > 1:
                self.end(connection)

    def place(self) -> None:
        """Place a job."""
        self.schedule.place(self.job(), self.destination, NOW)

    def job(self) -> Job:
        """A new job of a message and a sender of its own."""
        self._number += 1
        entry = Entry(0, b"u@a.example", Area.INCOMING, NOW)
        message = Message(SpoolId(self._number), b"s%d@b.example" % self._number, b"-", False, NOW, 1000, 1, [entry])
        return Job(message, message.entries, NOW, HOP)

    def begin(self, connection: Connection) -> None:
        """Let the next job of a connection begin."""
        job = self.schedule.next_job(connection, NOW)
        assert job is not None
        self.under_way[connection].append(job)

    def end(self, connection: Connection) -> None:
        """Let the oldest job under way end."""
        self.schedule.end_job(self.under_way[connection].pop(0), connection)


def _first(hosts: Sequence[Host]) -> Host:
    return hosts[0]


def _room(connections: int) -> Callable[[], None]:
    host = _Host(connections, 0)
    newest = host.connections[-1]

    def decide() -> None:
        host.place()
        host.begin(newest)
        host.end(newest)

    return decide


def _crowd(host: _Host, jobs: int) -> None:
    """Give each connection so many jobs."""
    for _ in range((jobs - 1) * len(host.connections)):
        host.place()


def _crowded(connections: int) -> Callable[[], None]:
    host = _Host(connections, 0)
    _crowd(host, 2 * host.schedule.limits.backlog)
    turn = 0

    def decide() -> None:
        nonlocal turn
        host.place()
        connection = host.connections[turn]
        turn = (turn + 1) % connections
        host.begin(connection)
        host.end(connection)

    return decide


def _idle(connections: int) -> Callable[[], None]:
    host = _Host(connections, 0)
    for connection in host.connections:
        host.end(connection)
        host.schedule.rest(connection)
    newest = host.connections[-1]

    def decide() -> None:
        host.place()
        host.begin(newest)
        host.end(newest)
        host.schedule.rest(newest)

    return decide


def _another(connections: int) -> Callable[[], None]:
    host = _Host(connections, 0)
    _crowd(host, host.schedule.limits.backlog)
    host.schedule.limits.max_connections += 1
    job = host.job()

    def decide() -> None:
        found = choose(job, host.destination, host.schedule.pool, NOW, _first)
        assert isinstance(found, Host)

    return decide


WAYS: dict[str, Callable[[int], Callable[[], None]]] = {
    "room": _room,
    "crowded": _crowded,
    "idle": _idle,
    "another": _another,
}


def measure(decisions: int = DECISIONS, repeats: int = REPEATS) -> dict[str, dict[int, float]]:
    """Seconds of a decision, by way and number of connections: the least of some repeats, which take turns."""
    made = {(way, count): make(count) for way, make in WAYS.items() for count in COUNTS}
    least = dict.fromkeys(made, float("inf"))
    for _ in range(repeats):
        for key, decide in made.items():
            began = time.perf_counter()
            for _ in range(decisions):
                decide()
            least[key] = min(least[key], (time.perf_counter() - began) / decisions)
    return {way: {count: least[way, count] for count in COUNTS} for way in WAYS}
