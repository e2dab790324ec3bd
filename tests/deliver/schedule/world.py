"""Hosts, connections and a pool in states as wanted, and the choice over them."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.deliver.limits.sets import DestinationLimits, MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.schedule import choice
from mailismus.deliver.schedule.choice import Choice, PickOne
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.destination import Destination, FoundHost
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.pool import Pool
from mailismus.mail.reply import Reply
from tests.deliver.schedule.jobs import HOP, concurrency, job

REFUSED = Reply(451, b"4.4.1", b"refused")
NOW = 1000.0
DEATH_S = 300.0


def first(hosts: Sequence[Host]) -> Host:
    return hosts[0]


def last(hosts: Sequence[Host]) -> Host:
    return hosts[-1]


def window(size: int) -> Window:
    made = Window(None)
    made.size = size
    return made


class World:
    """`limits`: of the schedule; window and `server_limit` limit nothing at first."""

    def __init__(self, limits: ScheduleLimits | None = None) -> None:
        self.limits = limits or ScheduleLimits()
        self.destdb = DestDb(self.limits, Deaths(DEATH_S))
        self.pool = Pool(self.limits)
        self.mx_set = MxSet((("mx.example",), 25), window(1000), None)
        self.of = DestinationLimits(b"one.example", self.mx_set)
        self._idle_number = self._hosts = 0

    # ------------------------------------------------------------------ hosts

    def unused(self) -> Host:
        """A host of which nothing is known."""
        self._hosts += 1
        return self.destdb.find(f"192.0.2.{self._hosts}", 25)

    def closed(self, made_at: float, closed_at: float = NOW) -> Host:
        """A host whose last connection was made and closed then."""
        host = self.unused()
        self.close(self.active(host, made_at=made_at), closed_at)
        return host

    def dead(self, died_at: float = NOW) -> Host:
        """A host that has died then: at `NOW` it is dead, `DEATH_S` later due."""
        host = self.unused()
        connection = self.active(host, is_standing=False)
        self.leave(connection)
        self.destdb.note_failure(connection, REFUSED, HostFailure.NO_CONNECTION, died_at)
        self.close(connection)
        return host

    def due(self) -> Host:
        """A host that was dead and may be tried."""
        return self.dead(NOW - DEATH_S)

    # ------------------------------------------------------------------ connections

    def active(self, host: Host, jobs: int = 0, *, is_standing: bool = True, made_at: float = NOW) -> Connection:
        """Another connection of this host with so many jobs."""
        connection = self.destdb.connect(host, self.mx_set, made_at)
        self.pool.opened()
        if is_standing:
            self.destdb.stand(connection, made_at)
        self.fill(connection, jobs)
        return connection

    def fill(self, connection: Connection, jobs: int) -> None:
        """Give a connection so many jobs."""
        for _ in range(jobs):
            connection.host.add_job(connection, job(99))

    def idle(self, host: Host) -> Connection:
        """Another connection of this host that becomes idle."""
        connection = self.active(host)
        self.rest(connection)
        return connection

    def charged(self, host: Host, sender: bytes = b"a") -> Connection:
        """Another connection of this host, made for a message of one recipient."""
        connection = self.active(host)
        self.pool.charge(connection, job(sender=sender))
        return connection

    def rest(self, connection: Connection) -> None:
        """Let an active connection become idle."""
        self._idle_number += 1
        connection.host.rest(connection, self._idle_number)
        self.pool.rested(connection)

    def wake(self, connection: Connection) -> None:
        """Give an idle connection a job."""
        self.pool.woke(connection)
        self.fill(connection, 1)

    def leave(self, connection: Connection) -> None:
        """Let a connection take no more jobs."""
        if connection.is_leaving:
            return
        if connection.is_idle:
            self.pool.woke(connection)
        self.pool.left(connection)
        self.destdb.leave(connection)

    def close(self, connection: Connection, now: float = NOW) -> None:
        """Close a connection."""
        self.leave(connection)
        self.destdb.close(connection, now)
        self.pool.closed()

    # ------------------------------------------------------------------ the choice

    def choose(
        self,
        *levels: Sequence[Host],
        workers: int = 0,
        put_backs: int = 0,
        pick: PickOne = first,
        now: float = NOW,
        sender: bytes | None = None,
    ) -> Choice:
        """The choice for a job of a message with so many workers, or of a message of one recipient of this sender."""
        destination = Destination(HOP)
        found = [FoundHost(host.address, number, host) for number, level in enumerate(levels) for host in level]
        destination.set_hosts(found, self.of)
        wanted = job(concurrency=concurrency(workers), put_backs=put_backs) if sender is None else job(sender=sender)
        return choice.choose(wanted, destination, self.pool, now, pick)
