"""All sessions with other servers: carries out what the schedule decides, and tells it what happened.

    jobs -> schedule -> a session, by the connector -> outcomes -> settling

*Rules*
- A session ends with its transaction when it has had `maxmessages`, is older than `maxage_active`, its set uses too many
  connections, or its MAIL was a sign of too much; an idle one after `maxage_idle`, or when its worker is needed.
- While the queue allows no transaction, connections keep their jobs and begin when it does.
- The queue is asked about each job as its transaction begins. What it may have taken back is given back untried.
- Nothing is done for other jobs from within an engine's call: `serve` follows in a turn of its own.

*Not here*: what follows from replies and failures (`verdicts`), the place of each job (`schedule`), opening connections
(`connector`), looking up hosts (`lookups`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTCP, IReactorTime

from mailismus.config.values.settings import DeliverSettings, ScheduleSettings
from mailismus.deliver.authentication.renewal import SecretWatch
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.giving_back import delay_s
from mailismus.deliver.jobs.conversion import Conversions
from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.knowledge.quirks import QuirkMemory
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.log_line import NO_FIELDS
from mailismus.deliver.lookups import Lookups
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.routes.route import HOST_NONE, NextHop
from mailismus.deliver.schedule.choice import PickOne
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import NO_LIMIT, ScheduleLimits
from mailismus.deliver.schedule.schedule import PATIENCE_S, SLOW_AFTER_S, Schedule
from mailismus.deliver.security.profile import Profile
from mailismus.deliver.sessions.connector import Connector
from mailismus.deliver.sessions.host_session import ClientSessionState
from mailismus.deliver.sessions.lmtp_session import LmtpSession
from mailismus.deliver.sessions.protocol import ClientSession
from mailismus.deliver.sessions.tls_clients import TlsClients
from mailismus.deliver.sessions.verdicts import SessionVerdicts
from mailismus.deliver.settling import Settling
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.mail.reply import Reply
from mailismus.queue.content import IContent

TICK_S = 0.1
STOOD_STILL_S = 10.0
"""A tick this late means that the process was stopped (SIGSTOP, a paused machine), and its time-outs with it. A loop that is
merely busy has shorter turns: those must not extend time-outs for ever."""


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


class Sessions(SessionVerdicts):
    """All sessions. `pick`: one of some hosts at random; `sets`: the limits of all destinations."""

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
        sets: LimitsOf,
        secrets: Secrets,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.read: Callable[[SpoolId], bytes | Deferred[IContent]] = queue.read
        self.may_try: Callable[[SpoolId], bool] = queue.may_try
        self.quirks = QuirkMemory()
        self.tls = TlsClients(clock)
        self.conversions = Conversions(queue.read, clock)
        self.secrets = secrets
        self._limits = destdb.limits
        self.max_idle_s = self._limits.max_idle_s
        schedule = Schedule(destdb, sets, self, pick)
        connector = Connector(settings, name, tcp, monotonic, settling.counters)
        watch = SecretWatch(secrets, clock, self._try_credentials_again)
        super().__init__(schedule, held, settling, self.tls, connector, watch, monotonic)
        self.lookups = Lookups(locator, self.schedule, self, monotonic)
        self._all: dict[ClientSession, None] = {}
        """Sessions that are not closed."""
        self._stalled: dict[Connection, None] = {}
        """Connections that wait until the queue allows transactions."""
        self._tick: IDelayedCall | None = None
        self._ticks_at = 0.0
        self._waits_to_begin = self._is_service_due = False
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
        now = self._trusted_since = self.monotonic()
        self.lookups.forget()
        self.schedule.limits_of.begin_anew(now)
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
        self._secret_watch.stop()
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

    # ------------------------------------------------------------------ called by the schedule (`placing.ScheduleOwner`)

    def open_connection(self, connection: Connection, destination: Destination) -> None:
        found, label = destination.names[connection.host], destination.labels[connection.host]
        kind = ClientSession if connection.host.profile.mailboxes is None else LmtpSession
        session = kind(self, connection, found, label, self.connector.name, self._settings.client)
        connection.carry(session)
        self._all[session] = None
        self.connector.connect(session, self)

    def locate(self, destination: Destination, job: Job, now: float) -> bool | Outcome:
        return self.lookups.locate(destination, job, now)

    def defer(self, job: Job, destination: Destination, reply: Reply, label: bytes, known_for_s: float | None) -> None:
        was_tried = label != HOST_NONE and reply is destination.last_reply()
        job.begin(self.monotonic(), destination.fields_of_failure() if was_tried else NO_FIELDS)
        self.giving_back.forget(job, destination, len(job.entries))
        self._settling.settle(job, job.entries, reply, label, known_for_s)

    def want_service(self) -> None:
        if not self._is_service_due and not self._is_stopping:
            self._is_service_due = True
            self._clock.callLater(0, self._serve)

    # ------------------------------------------------------------------ called by the connector

    def pause(self, seconds: float) -> None:
        """Make no connections for so long: this machine has no room for more."""
        self.schedule.pause(self.monotonic() + seconds)

    # ------------------------------------------------------------------ called by sessions (`lmtp_session.LmtpSessionOwner`)

    def tls_established(self, session: ClientSession, *, is_resumed: bool) -> None:
        self._settling.counters.count_tls_session(session.connection.host.profile.level.value, is_resumed=is_resumed)

    def session_authenticated(self, session: ClientSession) -> None:
        profile = session.connection.host.profile
        self._auth_misses.note_success(profile)
        self._secret_watch.forget(profile)

    def _try_credentials_again(self, profile: Profile) -> None:
        """End the wait of a profile: its secret is another one by now."""
        self.schedule.destdb.missed.forget_refused(profile)
        self.want_service()

    def session_established(self, session: ClientSession) -> None:
        self.schedule.stand(session.connection, session.now)
        host, setup_s = session.connection.host, session.now - session.opened_at
        next_hops = {job.next_hop for job in session.connection.queue}
        is_pipelining = session.client.opening.offers.pipelining
        self._settling.habits.note_session(next_hops, session.label, (host.address, host.port), setup_s, is_pipelining)

    def next_job(self, session: ClientSession, now: float, *, is_ahead: bool = False) -> Job | None:
        connection = session.connection
        if is_ahead and not connection.queue:
            return None
        if not self._request_begin(connection, is_ahead=is_ahead) or not self._may_go_on(connection, now):
            return None
        job = self.schedule.next_job(connection, now)
        while job is not None and not self.may_try(job.message.spool_id):
            self.give_back(job, connection)
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

    def session_left(self, session: ClientSession) -> None:
        connection = session.connection
        self._stalled.pop(connection, None)
        reply = self._lost.pop(session, None)
        if reply is not None:
            self._fail(session, reply, HostFailure.NO_SESSION, None)
        self.schedule.leave(connection, self.monotonic())
        if self._is_stopping and self._when_empty is not None and not self._busy():
            done, self._when_empty = self._when_empty, None
            self._end_ticks()
            done.callback(None)

    def is_worker_wanted(self, session: ClientSession) -> bool:
        return self.schedule.is_worker_wanted(session.connection)

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
            not connection.has_enough
            and connection.begun < limits.max_messages
            and now - connection.made_at < limits.max_age_s
            and mx_set.connections <= mx_set.window.size + mx_set.window.lent
            and not connection.host.endpoint.has_surplus
            and not (self.schedule.line.count and self.schedule.must_yield(connection, now))
        )

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
            self.lookups.end_slow(now)
            self.schedule.serve(now)
            self.giving_back.give_back_excess(self._settings.queuecache // 4, now)
            self.schedule.collect(now)
        self._start_ticks()
