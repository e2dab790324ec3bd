"""Sessions with next hops: opens connections as the schedule decides, assigns jobs, returns outcomes.

*Rules*
- A job is in one of three states: waiting in the queue of its next hop, on one session, or settled and gone.
- No transaction begins while the queue forbids it, or after `stop`.
- An untried job goes to a session that has begun nothing yet (some hosts take one message for each session). After
  `MAX_PUT_BACKS` times it counts as an attempt, so that no host keeps a job for ever.
- A transaction whose session is lost before the reply to its MAIL goes to another host, if there is one.
- A next hop that is dead or slow, or whose hosts are being looked up, delays no other.

One tick checks all deadlines and waiting jobs; it runs while there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTCP, IReactorTime

from mailismus.config.values.settings import DeliverSettings
from mailismus.deliver.connector import Connector
from mailismus.deliver.held import HeldEntries
from mailismus.deliver.hosts import Host, HostFailure, Hosts
from mailismus.deliver.idle import IdleSessions
from mailismus.deliver.job import Job
from mailismus.deliver.locator import Locator
from mailismus.deliver.protocol import ClientSession, ClientSessionState
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.quirks import QuirkMemory
from mailismus.deliver.room import surplus
from mailismus.deliver.route import NextHop
from mailismus.deliver.schedule import SLOW_REPLY_S, Hop, Schedule, give_back_delay_s
from mailismus.deliver.settling import Settling
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import IContent
from mailismus.smtp.client.transaction import Phase

MAX_PUT_BACKS = 3
MAX_AGE_S = 300.0
"""A session older than this ends after its job, so that load moves to other hosts."""
TICK_S = 0.1
STOOD_STILL_S = 10.0
"""A tick this late means that the process was stopped (SIGSTOP, a paused machine), and its time-outs with it. A loop that is
merely busy has shorter turns: those must not extend time-outs for ever."""
HOPS_A_TICK = 250
"""Next hops handled in one tick; the others follow in later ticks, so that thousands do not block the reactor."""
GIVE_BACK_DELAY_S = 0.0
_ASKED, _IN_DOUBT = Phase.ASKED, Phase.IN_DOUBT  # names of the module: an attribute of an enum is slow in Python 3.11


class Sessions:
    """All sessions."""

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
        hosts: Hosts,
        held: HeldEntries,
    ) -> None:
        self._settings = settings
        self._clock, self.monotonic = clock, monotonic
        self._settling = settling
        self._held = held
        self.read: Callable[[SpoolId], bytes | Deferred[IContent]] = queue.read
        self.quirks = QuirkMemory()
        self.schedule: Schedule[ClientSession] = Schedule(
            settings.maxconnections, settings.maxserverconnections, hosts, settings.queuecache // 4
        )
        self._max_messages = settings.maxmessages or 1 << 30
        self.connector = Connector(settings, name, tcp, monotonic, settling, locator, self.schedule)
        self._all = self.connector.sessions
        self._lost: dict[ClientSession, Reply] = {}
        """Sessions that ended before they took a message while there was another host, and why."""
        self._idle: IdleSessions[ClientSession] = IdleSessions()
        self._tick: IDelayedCall | None = None
        self._ticks_at = 0.0
        self._tick_position = 0
        self._waits_to_begin = False
        self._is_stopping = False
        self._when_empty: Deferred[None] | None = None

    # ------------------------------------------------------------------ called by the task

    def add(self, next_hop: NextHop, jobs: Iterable[Job]) -> Hop[ClientSession]:
        """Add jobs; call `dispatch` with the returned next hops when all are added."""
        hop = self.schedule.hop(next_hop)
        for job in jobs:
            hop.add(job)
        return hop

    def give_back_surplus(self, waiting: dict[NextHop, list[Job]]) -> bool:
        """Give back the last of these jobs, which are not added yet, as far as they go beyond the share of their next hop
        (`room`). Return whether there were any. They come again later the longer the next hop's first job has waited."""
        held, now, has_surplus = self._held, self.monotonic(), False
        room = held.room() + sum([len(job.entries) for jobs in waiting.values() for job in jobs])
        for next_hop, jobs in waiting.items():
            hop = self.schedule.hops.get(next_hop)
            count = surplus([len(job.entries) for job in jobs], hop.entries if hop is not None else 0, room, held.kept)
            if count:
                has_surplus = True
                delay_s = give_back_delay_s(hop.waited_s(now) if hop is not None else 0.0)
                for job in [jobs.pop() for _ in range(count)]:
                    held.free(job.message.sender, len(job.entries))
                    self._settling.give_back(job, delay_s)
            room -= sum([len(job.entries) for job in jobs])
        return has_surplus

    def dispatch(self, hops: Iterable[Hop[ClientSession]]) -> None:
        """Start work for these next hops."""
        now = self.monotonic()
        for hop in hops:
            self._dispatch(hop, now)
            self._give_back_excess(hop, now)

    def wake(self) -> None:
        """Go on: the queue allows transactions again."""
        self._waits_to_begin = False
        self._dispatch_all()

    def reload(self, settings: DeliverSettings) -> None:
        """Use other settings for later sessions. Jobs that have not begun are given back, since their route may change."""
        self._settings = settings
        self.connector.reload(settings)
        self._max_messages = settings.maxmessages or 1 << 30
        self.schedule.set_limits(settings.maxconnections, settings.maxserverconnections, settings.queuecache // 4)
        for hop in list(self.schedule.hops.values()):
            self._give_back_pending(hop)

    def forget_hosts(self) -> None:
        """Distrust all knowledge of hosts: new connections decide, and idle sessions end."""
        self.connector.forget_hosts()
        self._clock.callLater(0, self._end_idle)  # in a turn of its own: the caller may be inside an engine

    def _end_idle(self) -> None:
        for hop in list(self.schedule.hops.values()):
            while hop.idle:
                hop.idle.pop(0).quit()

    def stop(self) -> Deferred[None]:
        """Begin no transaction, cut off those before their final dot, wait for those after it. Fires when none is left; call
        `abort` when it takes too long."""
        self._is_stopping = True
        self.connector.stop()
        for hop in list(self.schedule.hops.values()):
            self._give_back_pending(hop)
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
    def open(self) -> int:
        """Connections, including those being opened and those in QUIT."""
        return len(self._all)

    # ------------------------------------------------------------------ called by sessions (`protocol.ClientSessionOwner`)

    def session_established(self, session: ClientSession) -> None:
        self.schedule.session_established(session.hop, self._all[session])

    def next_job(self, session: ClientSession, now: float, *, is_ahead: bool = False) -> Job | None:
        hop = session.hop
        if is_ahead:
            if not hop.pending or hop.reply_s >= SLOW_REPLY_S:
                return None
        elif not hop.pending and not hop.returned:
            return None
        if not self._request_begin() or not self._may_go_on(session, now):
            return None
        job = hop.next_job(session.begun)
        if job is not None:
            self._settling.counters.count_transaction()
        return job

    def keep_idle(self, session: ClientSession) -> bool:
        host = self._all[session]
        if (
            self._is_stopping
            or self.schedule.is_wanted_by_others(session.hop, host)
            or not self._may_go_on(session, self.monotonic())
        ):
            return False
        self._idle.add(session, host)
        return True

    def settle(self, session: ClientSession, job: Job, reply: Reply) -> None:
        phase = job.phase
        if phase is _ASKED and self._may_go_elsewhere(session, job):
            self._lost[session] = reply
            self.put_back(session, job)
            return
        entries = job.remaining() if job.refused else job.entries
        if phase is _IN_DOUBT:
            self._settling.counters.count_in_doubt(len(entries))
        self.release(session.hop, job.message.sender, len(entries))
        self._settling.settle(job, entries, reply, session.label)

    def settle_refused(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        self.release(session.hop, job.message.sender, 1)
        self._settling.settle(job, [job.entries[position]], reply, session.label)

    def put_back(self, session: ClientSession, job: Job) -> None:
        hop = session.hop
        job.rewind()
        if self._is_stopping:
            self.release(hop, job.message.sender, len(job.entries))
            self._settling.give_back(job, GIVE_BACK_DELAY_S)
        elif job.put_backs > MAX_PUT_BACKS:
            self.release(hop, job.message.sender, len(job.entries))
            reply = Reply(451, b"4.4.2", b"host ends its sessions before this message's turn")
            self._settling.settle(job, job.entries, reply, session.label)
        else:
            hop.returned.append(job)

    def session_failed(self, session: ClientSession, reply: Reply) -> None:
        is_connected = session.state is not ClientSessionState.CONNECTING
        self.connector.host_failed(
            self, session, reply, HostFailure.NO_SESSION if is_connected else HostFailure.NO_CONNECTION
        )

    def session_left(self, session: ClientSession) -> None:
        hop, host = session.hop, self._all[session]
        self._idle.discard(session, host)
        if session in hop.idle:
            hop.idle.remove(session)
        self.schedule.connection_left(hop)
        if session.client.is_session:
            self.schedule.session_ended(hop, host)
        reply = self._lost.pop(session, None)
        if reply is not None:
            self.connector.host_failed(self, session, reply, HostFailure.NO_SESSION)
        self.schedule.forget_if_idle(hop)
        if self._is_stopping:
            if self._when_empty is not None and not self._busy():
                done, self._when_empty = self._when_empty, None
                self._end_ticks()
                done.callback(None)
            return
        self._clock.callLater(0, self._after_left, hop, host)  # in a turn of its own: the caller is inside the engine

    def session_closed(self, session: ClientSession) -> None:
        host = self._all.pop(session)
        self.schedule.connection_closed(host)
        if self.schedule.is_wanted(host):
            self._clock.callLater(0, self._after_closed, host)

    # ------------------------------------------------------------------ internal

    def _request_begin(self) -> bool:
        """Whether a transaction may begin now; if not, `wake` is called when the queue allows it."""
        if self._is_stopping:
            return False
        if self._settling.may_begin:
            return True
        if not self._waits_to_begin:
            self._waits_to_begin = True
            self._settling.when_may_begin().addCallback(lambda _: self._clock.callLater(0, self.wake))
        return False

    def _may_go_on(self, session: ClientSession, now: float) -> bool:
        """Whether a session may begin another transaction; always if it has begun none."""
        begun = session.begun
        if not begun:
            return True
        if begun >= self._max_messages or now - session.opened_at >= MAX_AGE_S:
            return False
        schedule = self.schedule
        return not ((schedule.starved or schedule.waiting) and schedule.must_yield(session.hop, self._all[session]))

    def _may_go_elsewhere(self, session: ClientSession, job: Job) -> bool:
        """Whether a job whose session was lost before the reply to MAIL goes to another host."""
        if self._is_stopping or job.put_backs >= MAX_PUT_BACKS:
            return False
        return session.hop.has_other(self._all[session], job.queued_at, self.monotonic())

    def release(self, hop: Hop[ClientSession], sender: bytes, count: int) -> None:
        hop.release(count)
        if not hop.entries:
            self.schedule.forget_if_idle(hop)
        self._held.free(sender, count)

    def _after_left(self, hop: Hop[ClientSession], host: Host) -> None:
        if not self._is_stopping:
            if self.schedule.is_wanted(host):  # other next hops wait for it
                self._after_closed(host)
            self._dispatch(hop, self.monotonic())

    def _after_closed(self, host: Host) -> None:
        """Use the room for another connection."""
        schedule, now = self.schedule, self.monotonic()
        for _ in range(len(schedule.starved) + len(schedule.waiting.get(host, ()))):
            hop = None if self._is_stopping else schedule.next_waiting(host, now)
            if hop is None:
                break
            self._dispatch(hop, now)

    def _dispatch_all(self) -> None:
        if not self._is_stopping:
            now = self.monotonic()
            for hop in self._waiting():
                self._dispatch(hop, now)

    def _waiting(self) -> list[Hop[ClientSession]]:
        return [hop for hop in self.schedule.hops.values() if hop.pending or hop.returned]

    def _dispatch(self, hop: Hop[ClientSession], now: float) -> None:
        if not hop.pending and not hop.returned:
            return
        self._start_ticks()
        schedule = self.schedule
        while schedule.wants_session(hop, now) and self._request_begin():
            if hop.idle:
                session = hop.idle.pop()
                self._idle.discard(session, self._all[session])
                job = self.next_job(session, now)
                if job is None:
                    session.quit()
                else:
                    session.begin(job)
            elif not self._connect(hop, now):
                break
        while schedule.wants_fresh_session(hop) and self._request_begin():
            if not self._connect(hop, now):
                if hop.idle:  # its connection is needed
                    hop.idle.pop(0).quit()
                break

    def _connect(self, hop: Hop[ClientSession], now: float) -> bool:
        """Open one more connection for this next hop. False: not now."""
        starved, waits_for = self.schedule.starved, hop.waits_for
        was_starved = hop in starved
        if self.connector.connect(self, hop, now):
            return True
        idle: ClientSession | None = None
        if hop in starved and not was_starved:
            idle = self._idle.find()
        elif hop.waits_for is not None and hop.waits_for is not waits_for:
            idle = self._idle.find_at(hop.waits_for)
        if idle is not None:  # closing it makes room
            idle.quit()
        return False

    def _give_back_pending(self, hop: Hop[ClientSession]) -> None:
        for job in hop.drain():
            self.release(hop, job.message.sender, len(job.entries))
            self._settling.give_back(job, GIVE_BACK_DELAY_S)

    def _give_back_excess(self, hop: Hop[ClientSession], now: float) -> None:
        """Give back the jobs of a slow next hop beyond its share of the room."""
        jobs, delay_s = self.schedule.excess(hop, self._held.room(), now)
        for job in jobs:
            self._settling.give_back(job, delay_s)
        if jobs:
            self.schedule.forget_if_idle(hop)
            for job in jobs:
                self._held.free(job.message.sender, len(job.entries))

    def _busy(self) -> bool:
        return any(session.state is ClientSessionState.BUSY for session in self._all)

    # ------------------------------------------------------------------ the tick

    def _start_ticks(self) -> None:
        if self._tick is None:
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
            waiting = self._waiting()
            self._tick_position = 0 if self._tick_position >= len(waiting) else self._tick_position
            self.dispatch(waiting[self._tick_position : self._tick_position + HOPS_A_TICK])
            self._tick_position += HOPS_A_TICK
        if self._all or self._waiting():
            self._start_ticks()
