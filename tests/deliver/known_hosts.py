"""A database of destinations without a schedule: hosts that die and live."""

from __future__ import annotations

from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.mail.reply import Reply

DEATHS = Deaths()


def destdb(deaths: Deaths = DEATHS, limit: int = 10_000) -> DestDb:
    """An empty one."""
    return DestDb(ScheduleLimits(), deaths, limit)


def connect(hosts: DestDb, address: str, now: float) -> Connection:
    """A connection that is being made to port 25 of this address."""
    return hosts.connect(hosts.find(address, 25), MxSet(((address,), 25), Window(None), None), now)


def fail(hosts: DestDb, address: str, reply: Reply, kind: HostFailure, now: float) -> bool:
    """A connection fails; whether the host is dead from now on."""
    connection = connect(hosts, address, now)
    hosts.leave(connection)
    is_dead = hosts.note_failure(connection, reply, kind, now)
    hosts.close(connection, now)
    return is_dead


def succeed(hosts: DestDb, address: str, now: float) -> None:
    """A session stands, and its connection is closed."""
    connection = connect(hosts, address, now)
    hosts.stand(connection, now)
    hosts.leave(connection)
    hosts.close(connection, now)
