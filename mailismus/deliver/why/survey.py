"""The survey: where each held job lies, and why (pure).

*Rules*: it walks over all that is held, at most `queuecache` entries; it is made for an administrator's question or
for a look at the holds, never for mail. A job in no place, for a turn, is not found.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import attrs

from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.local.hanging import Blockage
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.schedule import PATIENCE_S, Schedule
from mailismus.deliver.why import sentences
from mailismus.deliver.why.hold import Hold, Reason
from mailismus.deliver.why.limits import limit_of, name_of_host
from mailismus.deliver.why.sentences import Times, clear
from mailismus.mail.ids import SpoolId
from mailismus.smtp.client.transaction import Phase

CONNECTION_POOL, LOOKUP_POOL, LOCAL_POOL, OUR_QUEUE, OUR_MACHINE = (
    *("connections", "look-ups", "local deliveries", "queue", "machine"),
)
"""Subjects of holds that concern no host."""
_STEPS = {
    Phase.NEW: "about to begin",
    Phase.ASKED: "MAIL has no reply yet",
    Phase.ANSWERED: "the envelope has no reply yet",
    Phase.CONTENT: "its content is sent",
    Phase.IN_DOUBT: "its final dot has no reply yet",
    Phase.OVER: "over",
}


class SessionView(Protocol):
    """A session, as far as it is looked at."""

    @property
    def connection(self) -> Connection: ...
    @property
    def label(self) -> bytes: ...
    @property
    def now(self) -> float:
        """When the host last said something."""

    @property
    def setup_step(self) -> str:
        """What is awaited of the host before it takes mail."""

    @property
    def underway(self) -> Sequence[Job]:
        """Jobs that have begun."""


class LookupsView(Protocol):
    """Look-ups, as far as they are looked at."""

    @property
    def underway(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def most(self) -> int: ...
    def is_underway(self, destination: Destination) -> bool:
        """Whether it is looked up, and does not wait for that."""


class LocalView(Protocol):
    """Local deliveries, as far as they are looked at."""

    @property
    def most(self) -> int: ...
    @property
    def has_room(self) -> bool: ...
    @property
    def moving_of(self) -> Mapping[bytes, int]: ...
    def waiting_jobs(self) -> Mapping[Job, bytes]:
        """Jobs that wait, by user."""

    def underway_jobs(self) -> Mapping[Job, bytes]: ...
    def blockage_of(self, user: bytes, now: float) -> Blockage | None: ...


class Taking(NamedTuple):
    """How entries are taken from the queue now."""

    is_begun: bool = True
    is_full: bool = False
    """Whether entries wait for room."""
    most: int = 0
    """`queuecache`."""
    unreadable_until: float = 0.0
    """When the queue is asked again after it could not be read (monotonic seconds)."""
    error: str = ""
    in_doubt: int = 0
    """Outcomes that are not durable, where nothing may begin because of them; else 0."""
    machine_until: float = 0.0
    """When connections are made again (monotonic seconds)."""
    withheld: str = ""
    """Why the queue hands nothing out; empty: it does."""


@attrs.frozen
class View:
    """What the delivery task shows of itself."""

    schedule: Schedule
    sessions: Iterable[SessionView]
    lookups: LookupsView
    local: LocalView
    held: HeldEntries
    taking: Taking


class Lies(enum.Enum):
    """Where a job lies."""

    UNDERWAY = "underway"
    CONNECTION = "connection"
    LINE = "line"
    PARKED = "parked"
    LOOKUP = "lookup"
    LOCAL = "local"
    MAILDIR = "maildir"


class JobPlace(NamedTuple):
    """Where one job lies. `session`, `before`: of a connection, with as many jobs before it. `user`: of a local delivery."""

    job: Job
    lies: Lies
    session: SessionView | None = None
    before: int = 0
    user: bytes = b""


def held_ids(view: View) -> set[SpoolId]:
    """The messages that have held jobs."""
    return {found[0].message.spool_id for found in _walk(view)}


def survey(view: View, wanted: Container[SpoolId]) -> dict[SpoolId, list[JobPlace]]:
    """Where the held jobs of each of these messages lie."""
    places: dict[SpoolId, list[JobPlace]] = {}
    for found in _walk(view):
        spool_id = found[0].message.spool_id
        if spool_id in wanted:
            places.setdefault(spool_id, []).append(JobPlace(*found))
    return places


def _walk(view: View) -> Iterator[tuple[Job, Lies, SessionView | None, int, bytes]]:
    """All held jobs, with the other fields of their `JobPlace`."""
    underway, queued, parked, looked_up = Lies.UNDERWAY, Lies.CONNECTION, Lies.PARKED, Lies.LOOKUP
    for session in view.sessions:
        before = 0
        for job in session.underway:
            yield job, underway, session, before, b""
            before += 1
        for job in session.connection.queue:
            yield job, queued, session, before, b""
            before += 1
    for job in view.schedule.line:
        yield job, Lies.LINE, None, 0, b""
    for destination in view.schedule.destinations.values():
        for job in destination.parked if destination.parked.count else ():
            yield job, parked, None, 0, b""
        for job in destination.unlocated:
            yield job, looked_up, None, 0, b""
    for job, user in view.local.waiting_jobs().items():
        yield job, Lies.LOCAL, None, 0, user
    for job, user in view.local.underway_jobs().items():
        yield job, Lies.MAILDIR, None, 0, user


# ---------------------------------------------------------------------- why a job lies there


def reason_of(place: JobPlace, view: View, times: Times) -> Reason:
    """Why a job lies where it lies."""
    job, lies = place.job, place.lies
    if lies is Lies.UNDERWAY or lies is Lies.CONNECTION:
        return _on_connection(place, view, times)
    if lies is Lies.LOCAL or lies is Lies.MAILDIR:
        return _local(place, view, times)
    if view.taking.machine_until > times.monotonic:
        return no_machine(view, times)
    if lies is Lies.LINE:
        return no_worker(job, view)
    destination = view.schedule.destinations[job.next_hop]
    if lies is Lies.LOOKUP:
        return looked_up(destination, job.queued_at, view, times)
    return limit_of(destination, len(job.entries), times) or _next(job.next_hop)


def _next(next_hop: NextHop) -> Reason:
    return Reason(Hold.NEXT, clear(next_hop.host), sentences.next_one())


def _on_connection(place: JobPlace, view: View, times: Times) -> Reason:
    job, session = place.job, place.session
    assert session is not None
    connection = session.connection
    destination = view.schedule.destinations.get(job.next_hop)
    label = clear(session.label if destination is None else destination.labels.get(connection.host, session.label))
    if place.lies is Lies.UNDERWAY:
        return Reason(Hold.UNDERWAY, label, sentences.underway(label, times.since(job.begun_at), _STEPS[job.phase]))
    if not connection.is_standing:
        return Reason(Hold.QUEUED, label, sentences.set_up(label, session.setup_step, times.until(session.now)))
    if view.taking.in_doubt:
        return no_disk(view)
    if destination is not None:
        limit = crowding_of(job, destination, connection, view, times)
        if limit is not None:
            return limit
        if is_silent(session, times):
            return silence_of(session, name_of_host(destination, connection.host), times)
    return Reason(Hold.QUEUED, label, sentences.queued(label, place.before))


def crowding_of(job: Job, destination: Destination, connection: Connection, view: View, times: Times) -> Reason | None:
    """Why the jobs of a connection have no other one: it has more than its backlog, or the receiver throttles us. None:
    nothing keeps them from another one, or it is not needed."""
    if connection.jobs <= view.schedule.limits.backlog:
        return limit_of(destination, len(job.entries), times) if is_throttled(destination, connection) else None
    pool = view.schedule.pool
    if not pool.allows_job(job) or not pool.has_worker:
        return no_worker(job, view)
    return limit_of(destination, len(job.entries), times)


def is_throttled(destination: Destination, connection: Connection) -> bool:
    """Whether the host or the set of a connection has said or shown that it was too much."""
    limits, window = destination.limits, connection.host.window
    return (limits is not None and limits.window.is_cut) or (window is not None and window.is_cut)


def is_silent(session: SessionView, times: Times) -> bool:
    """Whether a host has not replied for long while mail waits behind that."""
    return bool(session.connection.queue) and times.monotonic - session.now >= PATIENCE_S


def silence_of(session: SessionView, name: str, times: Times) -> Reason:
    """A host that does not reply."""
    waiting = len(session.connection.queue)
    return Reason(Hold.SLOW, name, sentences.slow(name, times.monotonic - session.now, waiting))


def _local(place: JobPlace, view: View, times: Times) -> Reason:
    user, name, local = place.user, clear(place.user), view.local
    if place.lies is Lies.MAILDIR:
        return Reason(Hold.UNDERWAY, name, sentences.delivering(name, times.since(place.job.begun_at)))
    if view.taking.in_doubt:
        return no_disk(view)
    blockage = local.blockage_of(user, times.monotonic)
    if blockage is not None:
        return blocked(name, blockage, times)
    if not local.has_room:
        return no_local_room(view)
    return no_turn(user, view)


# ---------------------------------------------------------------------- pools, the queue, this machine


def no_worker(job: Job | None, view: View) -> Reason:
    """No worker is free, or the message of this job or its sender has the share."""
    pool, most = view.schedule.pool, view.schedule.limits.max_connections
    if job is not None and pool.has_worker:
        concurrency = job.concurrency
        if concurrency is not None and not pool.allows_message(concurrency):
            return Reason(Hold.SHARE, CONNECTION_POOL, sentences.share(len(concurrency.workers), most))
        if not pool.allows_job(job):
            sender = job.message.sender
            return Reason(Hold.SHARE, CONNECTION_POOL, sentences.share_of_sender(pool.of_sender(sender), most))
    return Reason(Hold.WORKERS, CONNECTION_POOL, sentences.workers(pool.open - len(pool.idle), most))


def looked_up(destination: Destination, since: float, view: View, times: Times) -> Reason:
    """The hosts of a destination are not known."""
    lookups, domain = view.lookups, clear(destination.next_hop.host)
    if lookups.is_underway(destination):
        return Reason(Hold.LOOKUP, domain, sentences.looked_up(domain, times.since(since)))
    return Reason(Hold.LOOKUPS, LOOKUP_POOL, sentences.lookups(domain, lookups.underway, lookups.most))


def no_local_room(view: View) -> Reason:
    """All local deliveries are used."""
    most = view.local.most
    return Reason(Hold.LOCAL, LOCAL_POOL, sentences.local(sum(view.local.moving_of.values()), most))


def no_turn(user: bytes, view: View) -> Reason:
    """A user, or the message, has as many local deliveries as he may have."""
    name = clear(user)
    return Reason(Hold.USER, name, sentences.user(name, view.local.moving_of.get(user, 0)))


def blocked(name: str, blockage: Blockage, times: Times) -> Reason:
    """The maildir of a user does not answer."""
    return Reason(Hold.MAILDIR, name, sentences.maildir(name, times.since(blockage.since)))


def no_disk(view: View) -> Reason:
    """Too many outcomes are not durable."""
    return Reason(Hold.DISK, OUR_QUEUE, sentences.disk(view.taking.in_doubt))


def no_machine(view: View, times: Times) -> Reason:
    """This machine makes no connections."""
    return Reason(Hold.MACHINE, OUR_MACHINE, sentences.machine(times.until(view.taking.machine_until)))


def unreadable(view: View, times: Times) -> Reason:
    """The queue can't be read."""
    taking = view.taking
    return Reason(Hold.QUEUE, OUR_QUEUE, sentences.unreadable(times.until(taking.unreadable_until), taking.error))


def withheld(view: View) -> Reason:
    """The queue hands nothing out."""
    return Reason(Hold.QUEUE, OUR_QUEUE, sentences.withheld(view.taking.withheld))


def no_room(view: View) -> Reason:
    """As many entries are held as may be."""
    return Reason(Hold.ROOM, "queuecache", sentences.room(view.held.count, view.taking.most))


def is_slow(destination: Destination, now: float, after_s: float) -> bool:
    """Whether jobs of a destination wait for long."""
    return destination.entries > 0 and after_s < destination.slow_s(now) < math.inf
