"""`Schedule` with an owner that plays all sessions and look-ups, on plain numbers for time."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.routes.route import HOST_NONE, NextHop
from mailismus.deliver.schedule.choice import PickOne
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.destination import Destination, FoundHost
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.deliver.security.profile import PLAIN, Profile
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from tests.deliver.harness import deliver_settings
from tests.deliver.schedule.jobs import HOP, job
from tests.deliver.schedule.world import REFUSED, first

MAX_PUT_BACKS = 3
DEATHS = Deaths(20.0, 80.0, 100.0)
LABEL = b"mx[192.0.2.1]:25"
MISSED = Reply(451, b"4.7.4", b"TLS is required")
NONE_FOUND = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.4", b"none found"), HOST_NONE)


@attrs.define
class Deferred:
    """A job that the schedule gave up."""

    job: Job
    reply: Reply
    label: bytes
    known_for_s: float | None


class Session:
    """The session over one connection. `begun`: its jobs under way."""

    def __init__(self, desk: Desk, connection: Connection) -> None:
        self._desk = desk
        self.connection = connection
        self.begun: list[Job] = []
        self.transactions = 0

    def begin(self) -> None:
        self._desk.go_on(self.connection)

    def quit(self) -> None:
        self._desk.schedule.leave(self.connection, self._desk.now)


class Desk:
    """`hosts_of`: the addresses of each next hop, by preference; without an entry a look-up takes until `found`."""

    def __init__(
        self,
        limits: ScheduleLimits | None = None,
        levels: Sequence[Sequence[str]] = (("192.0.2.1",),),
        pick: PickOne = first,
        server_limit: int = 0,
        window: int = 1000,
        deaths: Deaths = DEATHS,
    ) -> None:
        self.now = 1000.0
        self.limits = limits or ScheduleLimits()
        self.window = window
        self.destdb = DestDb(self.limits, deaths)
        self.limits_of = LimitsOf(deliver_settings(maxserverconnections=server_limit))
        self.schedule = Schedule(self.destdb, self.limits_of, self, pick)
        self.hosts_of: dict[NextHop, Sequence[Sequence[str]]] = {HOP: levels}
        self.located_s = 10.0
        self.sessions: dict[Connection, Session] = {}
        """Of connections that are not closed."""
        self.opened: list[Connection] = []
        self.deferred: list[Deferred] = []
        self.delivered: list[Job] = []
        self.wants_service = False

    # ------------------------------------------------------------------ called by the schedule

    def open_connection(self, connection: Connection, destination: Destination) -> None:
        assert connection.host in destination.labels
        assert not connection.host.is_dead(self.now)
        session = self.sessions[connection] = Session(self, connection)
        connection.carry(session)
        self.opened.append(connection)

    def locate(self, destination: Destination, job: Job, now: float) -> bool | Outcome:
        if destination.is_locating:
            return False
        levels = self.hosts_of.get(destination.next_hop)
        if levels is None:
            destination.begin_locating()
            return False
        if not levels:
            return NONE_FOUND
        self._set_hosts(destination, levels)
        return True

    def _set_hosts(self, destination: Destination, levels: Sequence[Sequence[str]]) -> None:
        limits = destination.limits
        if limits is None:
            names = sorted({address for level in levels for address in level})
            limits = self.limits_of.hold(destination.next_hop.host.encode(), names, 25)
            limits.window.size = max(limits.window.size, self.window)
        find, profile = self.destdb.find, destination.next_hop.profile
        found = [FoundHost(address, level, find(address, 25, profile)) for level, of in enumerate(levels) for address in of]
        destination.set_hosts(found, limits)
        destination.set_located(self.now + self.located_s)

    def defer(self, job: Job, destination: Destination, reply: Reply, label: bytes, known_for_s: float | None) -> None:
        self._forget(job)
        self.deferred.append(Deferred(job, reply, label, known_for_s))

    def want_service(self) -> None:
        self.wants_service = True

    # ------------------------------------------------------------------ what happens

    def add(
        self, message: int = 1, sender: bytes = b"a", recipients: int = 1, next_hop: NextHop = HOP, *, is_sole: bool = False
    ) -> Job:
        """Add a job. `is_sole`: its message has no other one."""
        concurrency = None if is_sole else self.schedule.concurrency(SpoolId(message))
        made = job(message, sender, recipients, next_hop, concurrency)
        destination = self.schedule.known.of(next_hop)
        destination.entries += recipients
        self.schedule.place(made, destination, self.now)
        return made

    def found(self, next_hop: NextHop, levels: Sequence[Sequence[str]]) -> None:
        """A look-up under way ends; without hosts its jobs are deferred."""
        destination = self.schedule.destinations[next_hop]
        destination.end_locating()
        if levels:
            self._set_hosts(destination, levels)
            self.schedule.located(destination, self.now)
        else:
            for waiting in self.schedule.take_unlocated(destination):
                self.defer(waiting, destination, NONE_FOUND.reply, HOST_NONE, None)
        self.schedule.known.forget_if_unused(destination)

    def stand(self, connection: Connection) -> None:
        """Greeting and EHLO are accepted."""
        self.schedule.stand(connection, self.now)
        self.go_on(connection)

    def go_on(self, connection: Connection) -> None:
        """Begin the next job, or become idle, or end."""
        mx_set, transactions = connection.mx_set, self.sessions[connection].transactions
        if transactions and (transactions >= self.limits.max_messages or mx_set.connections > mx_set.window.size):
            self.schedule.leave(connection, self.now)
            return
        next_job = self.schedule.next_job(connection, self.now)
        if next_job is not None:
            session = self.sessions[connection]
            session.transactions += 1
            session.begun.append(next_job)
        elif not (connection.jobs or connection.is_idle):
            self.schedule.rest(connection)

    def begin_ahead(self, connection: Connection) -> None:
        """Pipeline a job behind the final dot of the one under way."""
        session = self.sessions[connection]
        if connection.queue and session.begun and session.transactions < self.limits.max_messages:
            self.go_on(connection)

    def deliver(self, connection: Connection) -> Job:
        """The first job under way is delivered."""
        done = self._end_first(connection)
        destination = self.schedule.destinations[done.next_hop]
        destination.note_moved(self.now, 0.0)
        self._forget(done)
        self.delivered.append(done)
        if connection.mx_set.note_delivered(self.now) or connection.host.endpoint.note_delivered():
            self.schedule.grown()
        self._end_of_transaction(connection)
        return done

    def put_back(self, connection: Connection) -> Job:
        """The first job under way was not tried."""
        done = self._end_first(connection)
        self._place_anew(done)
        self._end_of_transaction(connection)
        return done

    def _place_anew(self, job: Job) -> None:
        job.rewind()
        if job.put_backs > MAX_PUT_BACKS:
            self.defer(job, self.schedule.destinations[job.next_hop], REFUSED, LABEL, None)
        else:
            self.schedule.put_back(job)

    def _end_first(self, connection: Connection) -> Job:
        done = self.sessions[connection].begun.pop(0)
        self.schedule.end_job(done, connection)
        return done

    def _end_of_transaction(self, connection: Connection) -> None:
        if not self.sessions[connection].begun and not connection.is_leaving:
            self.go_on(connection)

    def fail(self, connection: Connection, kind: HostFailure = HostFailure.NO_CONNECTION, label: bytes = LABEL) -> None:
        """There is no session, or it ended before a message."""
        self.schedule.fail(connection, REFUSED, kind, label, self.now)
        self.lose(connection)

    def miss(self, connection: Connection, label: bytes = LABEL) -> None:
        """It missed what its profile demands."""
        self.schedule.miss(connection, MISSED, label, self.now)
        self.lose(connection)

    def lose(self, connection: Connection) -> None:
        """The connection is lost."""
        session = self.sessions[connection]
        for done in list(session.begun):
            self.schedule.end_job(done, connection)
            self._place_anew(done)
        session.begun.clear()
        self.schedule.leave(connection, self.now)
        self.close(connection)

    def close(self, connection: Connection) -> None:
        """The connection of a session that has left is closed."""
        del self.sessions[connection]
        self.schedule.close(connection, self.now)

    def give_back(self, jobs: Sequence[Job]) -> None:
        """Jobs that the schedule handed out are in no place."""
        for one in jobs:
            self._forget(one)

    def _forget(self, job: Job) -> None:
        destination = self.schedule.destinations[job.next_hop]
        destination.entries -= len(job.entries)
        self.schedule.forget_job(job, destination)

    def serve(self, most: int = 200) -> None:
        """Serve until nothing asks for it. It ends."""
        for _ in range(most):
            if not self.wants_service:
                return
            self.wants_service = False
            self.schedule.serve(self.now)
        raise AssertionError("serve asks for itself without an end")

    # ------------------------------------------------------------------ what is seen

    def host(self, address: str = "192.0.2.1", profile: Profile = PLAIN) -> Host:
        return self.destdb.find(address, 25, profile)

    def begun(self, connection: Connection) -> list[Job]:
        """Jobs under way."""
        return self.sessions[connection].begun
