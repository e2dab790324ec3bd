"""All sessions with other servers: carries out what the schedule decides, and tells it what happened.

    jobs -> schedule -> a session, by the connector -> outcomes -> settling

*Rules*
- A session ends with its transaction when it has had `maxmessages`, is older than `maxage_active`, or its set has fewer
  connections than it uses (a window that was cut). An idle one ends after `maxage_idle`, or when its worker is needed.
- While the queue allows no transaction, connections keep their jobs and begin when it does.
- A transaction that was begun and not tried is placed anew; after `MAX_PUT_BACKS` times it is deferred. So is one that
  failed by the fault of its host (`blame`), once for each host. Recipients that a transaction has no room for get another.
- A sign of too much (`blame`) cuts the window of the connection's set; up to EHLO that of its host.
- Nothing is done for other jobs from within an engine's call: `serve` follows in a turn of its own.

*Not here*: the place of each job (`schedule`), opening connections (`connector`), looking up hosts (`lookups`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTCP, IReactorTime

from mailismus.config.values.settings import DeliverSettings, ScheduleSettings
from mailismus.deliver.authentication.failure import AuthFailure, Scope
from mailismus.deliver.authentication.misses import AuthMisses
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.blame import (
    BROKEN,
    Blame,
    Culprit,
    Event,
    Sign,
    judge,
    judge_recipient,
    judge_session,
    judge_transaction,
)
from mailismus.deliver.connector import Connector
from mailismus.deliver.conversion import Conversions
from mailismus.deliver.giving_back import AT_ONCE_S, GivingBack, delay_s
from mailismus.deliver.held import HeldEntries
from mailismus.deliver.job import Job
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.locator import Locator
from mailismus.deliver.lookups import Lookups
from mailismus.deliver.misses import TlsMisses
from mailismus.deliver.protocol import ClientSession, ClientSessionState
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.quirks import QuirkMemory
from mailismus.deliver.route import HOST_NONE, NextHop
from mailismus.deliver.schedule.choice import PickOne
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import NO_LIMIT, ScheduleLimits
from mailismus.deliver.schedule.schedule import PATIENCE_S, SLOW_AFTER_S, Schedule
from mailismus.deliver.settling import Settling
from mailismus.deliver.tls_clients import TlsClients
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, RetryClass
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Entry, IContent, Message
from mailismus.smtp.client.starttls import TlsFailure
from mailismus.smtp.client.transaction import Phase

MAX_PUT_BACKS = 3
TICK_S = 0.1
STOOD_STILL_S = 10.0
"""A tick this late means that the process was stopped (SIGSTOP, a paused machine), and its time-outs with it. A loop that is
merely busy has shorter turns: those must not extend time-outs for ever."""
_IN_DOUBT, _USUAL = Phase.IN_DOUBT, RetryClass.USUAL  # names of the module: an attribute of an enum is slow in Python 3.11


def limits_of(settings: DeliverSettings) -> ScheduleLimits:
    """The limits of the schedule in these settings, where 0 is no limit."""
    schedule = settings.schedule
    return ScheduleLimits(
        max_connections=settings.maxconnections or NO_LIMIT,
        max_messages=settings.maxmessages or NO_LIMIT,
        max_concurrency=schedule.max_message_concurrency or NO_LIMIT,
        scale=schedule.scale_max_concurrency,
        backlog=schedule.backlog,
        max_idle_s=schedule.maxage_idle_s or NO_LIMIT,
        max_age_s=schedule.maxage_active_s or NO_LIMIT,
    )


def deaths_of(schedule: ScheduleSettings) -> Deaths:
    """For how long hosts are dead by these settings."""
    return Deaths(schedule.retry_host_s, schedule.max_retry_host_s, schedule.forget_host_s)


class Sessions:
    """All sessions. `pick`: one of some hosts at random."""

    def __init__(
        self,
        settings: DeliverSettings,
        name: bytes,
        tcp: IReactorTCP,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        queue: DeliveryQueue,
        settling: Settling,
        locator: Locator,
        destdb: DestDb,
        held: HeldEntries,
        pick: PickOne,
        chance: Callable[[], float],
        secrets: Secrets,
    ) -> None:
        self._settings = settings
        self._clock, self.monotonic = clock, monotonic
        self._settling = settling
        self._held = held
        self.read: Callable[[SpoolId], bytes | Deferred[IContent]] = queue.read
        self.quirks = QuirkMemory()
        self.tls = TlsClients(clock)
        self._misses = TlsMisses(self.tls.fallbacks, settling.counters)
        self.conversions = Conversions(queue.read)
        self.secrets = secrets
        self._auth_misses = AuthMisses(settling.counters)
        self._limits = destdb.limits
        self.max_idle_s = self._limits.max_idle_s
        self.schedule = Schedule(destdb, LimitsOf(settings, chance), self, pick)
        self.giving_back = GivingBack(self.schedule, held, settling)
        self.lookups = Lookups(locator, self.schedule, self, monotonic)
        self.connector = Connector(settings, name, tcp, monotonic, settling.counters)
        self._all: dict[ClientSession, None] = {}
        """Sessions that are not closed."""
        self._lost: dict[ClientSession, Reply] = {}
        """Sessions that ended before they took a message, and why."""
        self._rest: dict[Job, list[Entry]] = {}
        """Recipients that a transaction under way had no room for."""
        self._stalled: dict[Connection, None] = {}
        """Connections that wait until the queue allows transactions."""
        self._reloaded_at = -math.inf
        """A job queued earlier may have another route now."""
        self._trusted_since = 0.0
        """A connection made earlier tells nothing about its host."""
        self._tick: IDelayedCall | None = None
        self._ticks_at = 0.0
        self._waits_to_begin = self._is_service_due = self._is_stopping = False
        self._when_empty: Deferred[None] | None = None

    # ------------------------------------------------------------------ called by the task

    def add(self, next_hop: NextHop, jobs: Iterable[Job], now: float, most: int) -> None:
        """Place jobs of one next hop, of `most` recipients at most without its rate. Their entries may join an earlier job
        of their message that has not begun."""
        schedule = self.schedule
        destination = schedule.known.of(next_hop)
        if not destination.entries:
            destination.note_moved(now, 0.0)
        slow_s = destination.slow_s(now)
        for job in jobs:
            destination.entries += len(job.entries)
            if slow_s > SLOW_AFTER_S and self.giving_back.needs_room(destination):
                self.giving_back.give_back(job, destination, delay_s(slow_s))
            elif job.concurrency is not None and destination.join(job, self.most_recipients(next_hop, most)):
                schedule.forget_concurrency(job.concurrency)
            else:
                schedule.place(job, destination, now)
        self._start_ticks()

    def job(self, message: Message, entries: list[Entry], next_hop: NextHop, now: float) -> Job:
        """A job of a message with several recipients, which `add` is called with."""
        return Job(message, entries, now, next_hop, self.schedule.concurrency(message.spool_id))

    def most_recipients(self, next_hop: NextHop, most: int) -> int:
        """How many recipients a transaction with this next hop may have, where `most` are allowed without its rate."""
        destination = self.schedule.destinations.get(next_hop)
        rate = destination.limits.rate if destination is not None and destination.limits is not None else None
        return most if rate is None else rate.most_recipients(most)

    def wake(self) -> None:
        """Go on: the queue allows transactions again."""
        self._waits_to_begin = False
        stalled, self._stalled = self._stalled, {}
        for connection in stalled:
            if connection.is_listed and connection.is_standing and connection.carrier is not None:
                connection.carrier.begin()

    def reload(self, settings: DeliverSettings) -> None:
        """Use other settings for later sessions. Jobs that have not begun are given back, since their route may change; so
        are later those that have begun and were not tried. So a session of a profile that is no more gets no transaction."""
        self._settings = settings
        self._reloaded_at = self.monotonic()
        self.tls.renew()
        self.secrets.forget()
        self.connector.reload(settings)
        limits = limits_of(settings)
        is_other = limits.backlog != self._limits.backlog
        self._limits.become(limits)
        self.max_idle_s = limits.max_idle_s
        self.schedule.limits_of.use(settings)
        self.schedule.follow_settings()
        if is_other:
            self.schedule.destdb.relist()
        free = [session for session in self._all if session.drop_conversion()]
        self.giving_back.give_back_all()
        for session in free:
            session.begin()

    def forget_hosts(self) -> None:
        """Distrust all knowledge of hosts: new connections decide, and idle sessions end."""
        self._trusted_since = self.monotonic()
        self.lookups.forget()
        self._clock.callLater(0, self._end_idle)  # in a turn of its own: the caller may be inside an engine

    def forget_deaths_of(self, next_hop: NextHop) -> None:
        """Treat no host of a next hop as dead any more; if they are not known, none of those that are found next."""
        destination = self.schedule.destinations.get(next_hop)
        if destination is not None and destination.labels:
            self.schedule.destdb.forget_deaths_of(destination.labels)
            for host in destination.labels:
                self.tls.fallbacks.forget((host.address, host.port))
        elif not self.lookups.forgive(next_hop):
            self.schedule.destdb.forget_deaths()

    def _end_idle(self) -> None:
        for connection in list(self.schedule.pool.idle):
            if connection.carrier is not None:
                connection.carrier.quit()

    def stop(self) -> Deferred[None]:
        """Begin no transaction, cut off those before their final dot, wait for those after it. Fires when none is left; call
        `abort` when it takes too long."""
        self._is_stopping = True
        self.lookups.stop()
        self.giving_back.give_back_all()
        for session in list(self._all):
            session.cut_off()
        if not self._busy():
            self._end_ticks()
            return succeed(None)
        self._when_empty = Deferred()
        return self._when_empty

    def abort(self) -> None:
        """Settle unanswered transactions as in doubt."""
        for session in list(self._all):
            session.give_up(b"server stopped")
        self._end_ticks()

    @property
    def all(self) -> Iterable[ClientSession]:
        """Sessions that are not closed."""
        return self._all

    @property
    def open(self) -> int:
        """Connections, including those being opened and those in QUIT."""
        return len(self._all)

    # ------------------------------------------------------------------ called by the schedule (`schedule.ScheduleOwner`)

    def open_connection(self, connection: Connection, destination: Destination) -> None:
        found, label = destination.names[connection.host], destination.labels[connection.host]
        session = ClientSession(self, connection, found, label, self.connector.name, self._settings.client)
        connection.carry(session)
        self._all[session] = None
        self.connector.connect(session, self)

    def locate(self, destination: Destination, job: Job, now: float) -> bool | Outcome:
        return self.lookups.locate(destination, job, now)

    def defer(self, job: Job, destination: Destination, reply: Reply, label: bytes, known_for_s: float | None) -> None:
        was_tried = label != HOST_NONE and reply is destination.last_reply()
        job.begin(self.monotonic(), destination.tls_of_failure() if was_tried else b"")
        self.giving_back.forget(job, destination, len(job.entries))
        self._settling.settle(job, job.entries, reply, label, known_for_s)

    def want_service(self) -> None:
        if not self._is_service_due and not self._is_stopping:
            self._is_service_due = True
            self._clock.callLater(0, self._serve)

    # ------------------------------------------------------------------ called by the connector

    def connect_failed(self, session: ClientSession, reply: Reply) -> None:
        """Note that there is no connection to the host of this session."""
        self._fail(session, reply, HostFailure.NO_CONNECTION, judge(Event.CONNECT, reply))

    def pause(self, seconds: float) -> None:
        """Make no connections for so long: this machine has no room for more."""
        self.schedule.pause(self.monotonic() + seconds)

    # ------------------------------------------------------------------ called by sessions (`protocol.ClientSessionOwner`)

    def tls_established(self, session: ClientSession, *, is_resumed: bool) -> None:
        self._settling.counters.count_tls_session(session.connection.host.profile.level.value, is_resumed=is_resumed)

    def session_authenticated(self, session: ClientSession) -> None:
        self._auth_misses.note_success(session.connection.host.profile)

    def session_established(self, session: ClientSession) -> None:
        self.schedule.stand(session.connection, session.now)

    def next_job(self, session: ClientSession, now: float, *, is_ahead: bool = False) -> Job | None:
        connection = session.connection
        if is_ahead and not connection.queue:
            return None
        if not self._request_begin(connection, is_ahead=is_ahead) or not self._may_go_on(connection, now):
            return None
        job = self.schedule.next_job(connection, now)
        if job is not None:
            self._settling.counters.count_transaction()
            if job.concurrency is not None:
                self.schedule.destinations[job.next_hop].close(job)
        return job

    def keep_idle(self, session: ClientSession) -> bool:
        connection = session.connection
        if self._is_stopping or not self._may_go_on(connection, self.monotonic()):
            return False
        if not (connection.jobs or connection.is_idle):  # an idle one that was stalled asks again
            self.schedule.rest(connection)
        return True

    def settle(self, session: ClientSession, job: Job, reply: Reply) -> None:
        connection, destination = session.connection, self.schedule.destinations[job.next_hop]
        self.schedule.end_job(job, connection)
        destination.moved_at, destination.waited_s = session.now, job.begun_at - job.queued_at
        label = destination.labels.get(connection.host, session.label)
        if reply.code >= 400:
            self._settle_failed(session, job, reply, destination, label)
            return
        entries = job.entries
        if job.refused:
            self._queue_rest(job, destination)
            entries = job.remaining()
        self.giving_back.forget(job, destination, len(entries))
        self._settling.settle(job, entries, reply, label)
        mx_set, endpoint = connection.mx_set, connection.host.endpoint
        if mx_set.note_delivered(session.now) or (endpoint.window is not None and endpoint.note_delivered()):
            self.schedule.grown()

    def _settle_failed(self, session: ClientSession, job: Job, reply: Reply, destination: Destination, label: bytes) -> None:
        """Settle the rest of a job with this failure, or place it anew if that is the fault of its host."""
        blame = judge_transaction(job, reply)
        self._note_sign(session, blame, job, reply)
        self._queue_rest(job, destination)
        if blame.culprit is Culprit.HOST and self._may_begin_again(destination, job):
            if job.is_first:
                self._lost[session] = reply
            job.rewind()
            self._place_anew(job, destination, label)
            return
        entries = job.remaining()
        if job.phase is _IN_DOUBT:
            self._settling.counters.count_in_doubt(len(entries))
        self.giving_back.forget(job, destination, len(entries))
        self._settling.settle(job, entries, reply, label, retry=blame.retry)

    def settle_refused(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        blame, entry = judge_recipient(job, reply), job.entries[position]
        self._note_sign(session, blame, job, reply)
        if blame.culprit is Culprit.TRANSACTION:
            self._rest.setdefault(job, []).append(entry)
            return
        destination = self.schedule.destinations[job.next_hop]
        destination.entries -= 1
        self._held.free(job.message.sender, 1)
        label = destination.labels.get(session.connection.host, session.label)
        self._settling.settle(job, [entry], reply, label, retry=blame.retry)
        if not job.left:  # the engine says no more of it
            self.schedule.end_job(job, session.connection)
            self._queue_rest(job, destination)
            self.schedule.forget_job(job, destination)

    def settle_some(self, session: ClientSession, job: Job, positions: Sequence[int], reply: Reply) -> None:
        destination = self.schedule.destinations[job.next_hop]
        entries = [job.entries[position] for position in positions]
        destination.entries -= len(entries)
        self._held.free(job.message.sender, len(entries))
        self._settling.settle(job, entries, reply, destination.labels.get(session.connection.host, session.label))

    def put_back(self, session: ClientSession, job: Job) -> None:
        connection, destination = session.connection, self.schedule.destinations[job.next_hop]
        self.schedule.end_job(job, connection)
        self._queue_rest(job, destination)
        job.rewind()
        if self._is_gone(job):
            self.giving_back.give_back(job, destination, AT_ONCE_S)
        elif job.put_backs > MAX_PUT_BACKS:
            reply = Reply(451, b"4.4.2", b"host ends its sessions before this message's turn")
            self.giving_back.forget(job, destination, len(job.entries))
            self._settling.settle(job, job.entries, reply, destination.labels.get(connection.host, session.label))
        else:
            self.schedule.put_back(job)

    def session_failed(self, session: ClientSession, reply: Reply) -> None:
        failure = session.client.tls_failure
        if failure is not None:
            self._miss_tls(session, failure)
        elif session.auth_failure is not None:
            self._miss_auth(session, session.auth_failure)
        elif session.state is ClientSessionState.CONNECTING:
            self.connect_failed(session, reply)
        else:
            self._fail(session, reply, HostFailure.NO_SESSION, judge_session(session.client.refused, reply))

    def session_left(self, session: ClientSession) -> None:
        connection = session.connection
        self._stalled.pop(connection, None)
        reply = self._lost.pop(session, None)
        if reply is not None:
            self._fail(session, reply, HostFailure.NO_SESSION, None)
        self.schedule.leave(connection)
        if self._is_stopping and self._when_empty is not None and not self._busy():
            done, self._when_empty = self._when_empty, None
            self._end_ticks()
            done.callback(None)

    def session_closed(self, session: ClientSession) -> None:
        del self._all[session]
        self.schedule.close(session.connection, self.monotonic())

    # ------------------------------------------------------------------ internal

    def _request_begin(self, connection: Connection, *, is_ahead: bool) -> bool:
        """Whether a transaction may begin now; if not, `wake` is called when the queue allows it, unless the connection has
        a transaction under way (`is_ahead`): it asks again when that ends."""
        if self._is_stopping:
            return False
        if self._settling.may_begin:
            if self._stalled:
                self._stalled.pop(connection, None)
            return True
        if is_ahead:
            return False
        self._stalled[connection] = None
        if not self._waits_to_begin:
            self._waits_to_begin = True
            self._settling.when_may_begin().addCallback(lambda _: self._clock.callLater(0, self.wake))
        return False

    def _may_go_on(self, connection: Connection, now: float) -> bool:
        """Whether a session may begin another transaction; always if it has begun none."""
        if not connection.begun:
            return True
        limits, mx_set = self._limits, connection.mx_set
        return (
            connection.begun < limits.max_messages
            and now - connection.made_at < limits.max_age_s
            and mx_set.connections <= mx_set.window.size
            and not connection.host.endpoint.has_surplus
            and not (self.schedule.line.count and self.schedule.must_yield(connection))
        )

    def _may_begin_again(self, destination: Destination, job: Job) -> bool:
        """Whether a job that failed by the fault of its host costs no attempt: it may meet each host once."""
        return not self._is_stopping and job.put_backs < max(MAX_PUT_BACKS, len(destination.labels))

    def _note_sign(self, session: ClientSession, blame: Blame, job: Job, reply: Reply) -> None:
        """Cut the window of the set if this failure is a sign of too much."""
        if blame.sign is not Sign.NONE:
            mx_set = session.connection.mx_set
            mx_set.window.note_cut(session.now, job.begun_at, reply, mx_set.standing)

    def _queue_rest(self, job: Job, destination: Destination) -> None:
        """Give the recipients that had no room in this transaction others of the size that this one had."""
        rest = self._rest.pop(job, None) if job.refused else None
        if rest is None:
            return
        size = len(job.remaining()) or 1
        for at in range(0, len(rest), size):
            other = self.job(job.message, rest[at : at + size], job.next_hop, job.queued_at)
            self._place_anew(other, destination, HOST_NONE)

    def _is_gone(self, job: Job) -> bool:
        """Whether a job goes back to the queue rather than to another connection."""
        return self._is_stopping or job.queued_at < self._reloaded_at

    def _place_anew(self, job: Job, destination: Destination, label: bytes) -> None:
        if self._is_gone(job):
            self.giving_back.give_back(job, destination, AT_ONCE_S)
        else:
            self.schedule.put_back(job, label)

    def _miss_tls(self, session: ClientSession, failure: TlsFailure) -> None:
        """Note that a session missed what its profile demands of TLS."""
        connection, now = session.connection, self.monotonic()
        self._settling.counters.count_failed_connection()
        reply = self._misses.note(connection.host, session.label, failure, now)
        if reply is None or connection.made_at < self._trusted_since:
            self.schedule.leave(connection)  # the jobs get another connection
        else:
            self.schedule.miss(connection, reply, session.label, now)

    def _miss_auth(self, session: ClientSession, failure: AuthFailure) -> None:
        """Note that a session was not authenticated."""
        connection, now = session.connection, self.monotonic()
        self._settling.counters.count_failed_connection()
        scope = self._auth_misses.note(connection.host.profile, session.label, failure, now)
        if scope is Scope.NOTHING or connection.made_at < self._trusted_since:
            self.schedule.leave(connection)  # the jobs get another connection
        elif scope is Scope.PROFILE:
            self.schedule.refuse(connection, failure.reply, session.label, now)
        else:
            self.schedule.miss(connection, failure.reply, session.label, now, met_tls=True)

    def _fail(self, session: ClientSession, reply: Reply, kind: HostFailure, blame: Blame | None) -> None:
        """Note that no session with this session's host succeeded, or that it was lost before a message. `blame`: the
        judgement of what came up to EHLO."""
        connection = session.connection
        self.connector.note_failed(session, reply)
        if connection.made_at < self._trusted_since:
            self.schedule.leave(connection)  # the jobs get another connection
        else:
            was_broken = blame is not None and blame.sign in BROKEN
            self.schedule.fail(connection, reply, kind, session.label, self.monotonic(), was_broken=was_broken)

    def _busy(self) -> bool:
        return any(session.state is ClientSessionState.BUSY for session in self._all)

    def _serve(self) -> None:
        self._is_service_due = False
        if not self._is_stopping:
            self.schedule.serve(self.monotonic())
            self._start_ticks()

    # ------------------------------------------------------------------ the tick

    def _start_ticks(self) -> None:
        if self._tick is None and (self._all or self.schedule.has_work or self.schedule.known.has_unused):
            client = self._settings.client
            shortest_s = min(client.timeout_s, client.timeout_final_s, client.timeout_connect_s)
            tick_s = max(0.02, min(TICK_S, shortest_s / 2))
            self._ticks_at = self.monotonic() + tick_s
            self._tick = self._clock.callLater(tick_s, self._on_tick)

    def _end_ticks(self) -> None:
        if self._tick is not None and self._tick.active():
            self._tick.cancel()
        self._tick = None

    def _on_tick(self) -> None:
        self._tick = None
        now = self.monotonic()
        if now - self._ticks_at >= STOOD_STILL_S:
            for session in self._all:
                session.extend_deadlines(now - self._ticks_at)
        for session in [session for session in self._all if session.deadline <= now]:
            session.on_deadline()
        if not self._is_stopping:
            silent_since = now - PATIENCE_S
            for session in [session for session in self._all if session.connection.queue and session.now <= silent_since]:
                self.schedule.relieve(session.connection, now)
            self.schedule.serve(now)
            self.giving_back.give_back_excess(self._settings.queuecache // 4, now)
            self.schedule.collect(now)
        self._start_ticks()
