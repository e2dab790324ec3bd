"""The sessions with next hops: opens connections as the schedule says, gives them jobs, brings outcomes back.

*Rules*
- A job is in one place: waiting in its next hop's queue, on one session, or settled and gone.
- No transaction is begun while the queue says it may not, or after `stop`.
- What was untried goes to a session that has begun nothing yet (a host may take one message a session and no more); after
  `MAX_PUT_BACKS` times it counts as an attempt, so that no host can keep a job for ever.
- A next hop that is dead or slow delays nobody else: see `schedule`.

One tick looks at all deadlines and at what waits; it runs while there is something to look at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IAddress, IConnector, IDelayedCall, IReactorTCP, IReactorTime
from twisted.internet.protocol import ClientFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.settings import DeliverSettings
from mailismus.deliver.job import Job
from mailismus.deliver.protocol import Session, State
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.resolver import NameTrouble, Resolver
from mailismus.deliver.route import NOBODY, NextHop
from mailismus.deliver.schedule import Hop, Schedule
from mailismus.deliver.settling import Settling
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import IContent
from mailismus.smtp.client_transaction import Phase

MAX_PUT_BACKS = 3
MAX_AGE_S = 300.0
"""A session older than this ends after its job, so that load moves to other hosts."""
TICK_S = 0.1
GIVE_BACK_DELAY_S = 0.0


class Sessions:
    """All sessions. `on_free` is called with the number of entries that are no longer held here; `room` says how many
    more may be held."""

    _log = Logger()

    def __init__(
        self,
        settings: DeliverSettings,
        name: bytes,
        tcp: IReactorTCP,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        queue: DeliveryQueue,
        settling: Settling,
        resolver: Resolver,
        on_free: Callable[[int], None],
        room: Callable[[], int],
    ) -> None:
        self._settings, self._name = settings, name
        self._tcp, self._clock, self.monotonic = tcp, clock, monotonic
        self._queue, self._settling, self._resolver = queue, settling, resolver
        self._on_free, self._room = on_free, room
        self.read: Callable[[SpoolId], bytes | Deferred[IContent]] = queue.read
        self.schedule: Schedule[Session] = Schedule(settings.maxconnections, settings.maxserverconnections)
        self._max_messages = settings.maxmessages or 1 << 30
        self._all: set[Session] = set()
        self._tick: IDelayedCall | None = None
        self._waits_to_begin = False
        self._is_stopping = False
        self._when_empty: Deferred[None] | None = None

    # ------------------------------------------------------------------ the task's

    def add(self, next_hop: NextHop, job: Job) -> Hop[Session]:
        """A job to be delivered; call `dispatch` with what this gave when all are added."""
        hop = self.schedule.hop(next_hop)
        hop.pending.append(job)
        hop.entries += len(job.entries)
        return hop

    def dispatch(self, hops: Iterable[Hop[Session]]) -> None:
        """Get going on these next hops."""
        now = self.monotonic()
        for hop in hops:
            self._dispatch(hop, now)
            self._give_back_excess(hop, now)

    def wake(self) -> None:
        """The queue allows transactions again."""
        self._waits_to_begin = False
        self._dispatch_all()

    def stop(self) -> Deferred[None]:
        """No transaction is begun, one before its final dot is cut off, one behind it is waited for. Fires when none is
        left; call `abort` when it takes too long."""
        self._is_stopping = True
        for hop in self.schedule.hops.values():
            self._give_back_pending(hop)
        for session in list(self._all):
            session.cut_off()
        if not self._busy():
            self._end_ticks()
            return succeed(None)
        self._when_empty = Deferred()
        return self._when_empty

    def abort(self) -> None:
        """What is unanswered now is in doubt."""
        for session in list(self._all):
            session.give_up(b"server stopped")
        self._end_ticks()

    @property
    def open(self) -> int:
        """Connections, those being made and those that said QUIT included."""
        return len(self._all)

    # ------------------------------------------------------------------ the sessions' (see `protocol.Keeper`)

    def session_stands(self, session: Session) -> None:
        self.schedule.session_stands(session.hop, session.address)

    def next_job(self, session: Session) -> Job | None:
        hop = session.hop
        if not (hop.pending or hop.returned) or not self._may_begin() or not self._may_go_on(session):
            return None
        job = hop.next_job(session.begun)
        self._settling.counters.transactions += job is not None
        return job

    def next_behind(self, session: Session) -> Job | None:
        return self.next_job(session) if session.hop.may_pipeline() else None

    def may_idle(self, session: Session) -> bool:
        return not self._is_stopping and self._may_go_on(session)

    def settle(self, session: Session, job: Job, reply: Reply) -> None:
        entries = job.remaining()
        if job.phase is Phase.IN_DOUBT:
            self._settling.counters.in_doubt += len(entries)
        self._finish(session.hop, job, len(entries))
        self._settling.settle(job, entries, reply, session.label)

    def settle_refused(self, session: Session, job: Job, position: int, reply: Reply) -> None:
        self._finish(session.hop, job, 1)
        self._settling.settle(job, [job.entries[position]], reply, session.label)

    def put_back(self, session: Session, job: Job) -> None:
        hop = session.hop
        job.rewind()
        if self._is_stopping:
            self._finish(hop, job, len(job.entries))
            self._settling.give_back(job, GIVE_BACK_DELAY_S)
        elif job.put_backs > MAX_PUT_BACKS:
            self._finish(hop, job, len(job.entries))
            reply = Reply(451, b"4.4.2", b"host ends its sessions before this message's turn")
            self._settling.settle(job, job.entries, reply, session.label)
        else:
            hop.returned.append(job)

    def session_failed(self, session: Session, reply: Reply) -> None:
        self._host_failed(session, reply)

    def session_left(self, session: Session) -> None:
        hop = session.hop
        if session in hop.idle:
            hop.idle.remove(session)
        self.schedule.connection_closed(hop, session.address)
        if session.client.is_session:
            self.schedule.session_ended(hop, session.address)
        if self._is_stopping:
            if self._when_empty is not None and not self._busy():
                done, self._when_empty = self._when_empty, None
                self._end_ticks()
                done.callback(None)
            return
        self._clock.callLater(0, self._after_left, hop)  # in a turn of its own: the caller is deep in the engine

    def session_closed(self, session: Session) -> None:
        self._all.discard(session)

    # ------------------------------------------------------------------ within

    def _may_begin(self) -> bool:
        if self._is_stopping:
            return False
        if self._queue.may_begin:
            return True
        if not self._waits_to_begin:
            self._waits_to_begin = True
            self._queue.when_may_begin().addCallback(lambda _: self._clock.callLater(0, self.wake))
        return False

    def _may_go_on(self, session: Session) -> bool:
        return (
            session.begun < self._max_messages
            and self.monotonic() - session.opened_at < MAX_AGE_S
            and not (self.schedule.starved and self.schedule.must_yield(session.hop))
        )

    def _finish(self, hop: Hop[Session], job: Job, count: int) -> None:
        hop.entries -= count
        self._on_free(count)

    def _after_left(self, hop: Hop[Session]) -> None:
        if self._is_stopping:
            return
        now = self.monotonic()
        starved = self.schedule.starved
        for _ in range(len(starved)):
            self._dispatch(starved.popleft(), now)
        self._dispatch(hop, now)

    def _dispatch_all(self) -> None:
        if not self._is_stopping:
            now = self.monotonic()
            for hop in list(self.schedule.hops.values()):
                self._dispatch(hop, now)

    def _dispatch(self, hop: Hop[Session], now: float) -> None:
        if not hop.pending and not hop.returned:
            return
        self._start_ticks()
        if hop.is_dead(now):
            self._defer_pending(hop)
            return
        schedule = self.schedule
        while schedule.wants_session(hop, now) and self._may_begin():
            if hop.idle:
                session = hop.idle.pop()
                job = self.next_job(session)
                if job is None:
                    session.quit()
                else:
                    session.begin(job)
            elif not self._connect(hop, now):
                break
        while schedule.wants_fresh_session(hop) and self._may_begin() and not hop.is_dead(now):
            if not self._connect(hop, now):
                if hop.idle:  # its place is needed
                    hop.idle.pop(0).quit()
                break

    def _connect(self, hop: Hop[Session], now: float) -> bool:
        """One more connection for this next hop; False: not now."""
        if hop.is_resolving:
            return False
        try:
            addresses = self._resolver.addresses(hop.next_hop.host)
        except NameTrouble as trouble:
            self._name_failed(hop, trouble)
            return False
        if isinstance(addresses, Deferred):
            hop.is_resolving = True
            addresses.addCallbacks(self._resolved, self._not_resolved, callbackArgs=(hop,), errbackArgs=(hop,))
            return False
        hop.set_addresses(addresses)
        address = self.schedule.choose_host(hop, now)
        if address is None:
            self._close_idle_for(hop)
            return False
        session = Session(self, hop, address, self._name, self._settings.client)
        self._all.add(session)
        self.schedule.connection_opened(hop, address)
        self._settling.counters.connections += 1
        factory = _Connecting(session, self._connect_failed)
        self._tcp.connectTCP(address, hop.next_hop.port, factory, timeout=self._settings.client.timeout_connect_s)
        return True

    def _close_idle_for(self, hop: Hop[Session]) -> None:
        """The total is used up: an idle session of another next hop makes room."""
        if hop in self.schedule.starved:
            for other in self.schedule.hops.values():
                if other is not hop and other.idle:
                    other.idle.pop(0).quit()
                    return

    def _resolved(self, addresses: list[str], hop: Hop[Session]) -> None:
        hop.is_resolving = False
        if not self._is_stopping:
            self._dispatch(hop, self.monotonic())

    def _not_resolved(self, failure: Failure, hop: Hop[Session]) -> None:
        hop.is_resolving = False
        failure.trap(NameTrouble)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        if not self._is_stopping:
            self._name_failed(hop, failure.value)

    def _name_failed(self, hop: Hop[Session], trouble: BaseException | None) -> None:
        text = f"the address of {hop.next_hop.host} can't be found: {trouble}".encode("ascii", "replace")
        self.schedule.declare_dead(hop, Reply(451, b"4.4.3", text), self.monotonic())
        self._defer_pending(hop)

    def _connect_failed(self, session: Session, failure: Failure) -> None:
        if session.state is State.GONE:
            return
        number = getattr(failure.value, "osError", None)
        words = os.strerror(number) if isinstance(number, int) else str(failure.value)
        text = f"connect to {session.label.decode('ascii')} failed: {words}"
        self._host_failed(session, Reply(451, b"4.4.1", text.encode("ascii", "replace")[:500]))
        session.give_up(b"not connected")

    def _host_failed(self, session: Session, reply: Reply) -> None:
        self._settling.counters.connections_failed += 1
        self._log.info(
            "No session with {host}: {reply}", host=session.label.decode("ascii"), reply=bytes(reply).decode("ascii")
        )
        hop, now = session.hop, self.monotonic()
        self.schedule.host_failed(hop, session.address, reply, now)
        if hop.is_dead(now) and not self._is_stopping:
            self._defer_pending(hop, session.label)

    def _defer_pending(self, hop: Hop[Session], host: bytes = NOBODY) -> None:
        now = self.monotonic()
        for job in hop.drain():
            job.begun_at = now
            self._finish(hop, job, len(job.entries))
            self._settling.settle(job, job.entries, hop.dead_reply, host)

    def _give_back_pending(self, hop: Hop[Session]) -> None:
        for job in hop.drain():
            self._finish(hop, job, len(job.entries))
            self._settling.give_back(job, GIVE_BACK_DELAY_S)

    def _give_back_excess(self, hop: Hop[Session], now: float) -> None:
        """A slow next hop keeps no more than its share of the room."""
        freed = 0
        jobs, delay_s = self.schedule.excess(hop, self._room(), now)
        for job in jobs:
            freed += len(job.entries)
            self._settling.give_back(job, delay_s)
        if freed:
            self._on_free(freed)

    def _busy(self) -> bool:
        return any(session.state is State.BUSY for session in self._all)

    # ------------------------------------------------------------------ the tick

    def _start_ticks(self) -> None:
        if self._tick is None:
            client = self._settings.client
            shortest_s = min(client.timeout_s, client.timeout_final_s, client.timeout_connect_s)
            self._tick_s = max(0.02, min(TICK_S, shortest_s / 2))
            self._tick = self._clock.callLater(self._tick_s, self._on_tick)

    def _end_ticks(self) -> None:
        if self._tick is not None and self._tick.active():
            self._tick.cancel()
        self._tick = None

    def _on_tick(self) -> None:
        self._tick = None
        now = self.monotonic()
        for session in [session for session in self._all if session.deadline <= now]:
            session.on_deadline()
        if not self._is_stopping:
            self.dispatch(list(self.schedule.hops.values()))
        if self._all or any(hop.pending or hop.returned for hop in self.schedule.hops.values()):
            self._start_ticks()


class _Connecting(ClientFactory):
    """Twisted's way to one connection."""

    noisy = False

    def __init__(self, session: Session, on_failed: Callable[[Session, Failure], None]) -> None:
        self._session, self._on_failed = session, on_failed

    def buildProtocol(self, addr: IAddress | IPv4Address | IPv6Address | None) -> Session:
        return self._session

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        self._on_failed(self._session, reason)
