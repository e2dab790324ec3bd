"""Local deliveries: into the maildirs of users, by a limited number of threads.

*Rules*: one recipient, one file. At most `LIMIT` deliveries move at once, and no more than the disk serves well (`pace`).
These are workers, and messages share them as they share connections; senders, messages and users take turns. A delivery that
hangs keeps neither the threads nor the mail of other users: mail that waits for it is deferred. A stop gives back jobs that
have not begun, and waits for those that have: a delivery can't be cut off, and without a result it is in doubt.

*Not here*: whose turn it is (`turns`), how many workers a message may have (`schedule.shares`), which users must wait for a
hang (`hanging`), how a message gets into a maildir (`deposit`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.chunks.generator import process_generator
from mailismus.config.values.settings import MessageStoreSettings
from mailismus.deliver.context import DeliveryContext
from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.knowledge.blame import Event, judge
from mailismus.deliver.local.deposit import Deposits, reply_to_error
from mailismus.deliver.local.file_systems import FileSystems
from mailismus.deliver.local.hanging import LIMIT, STUCK_AFTER_S, Blockage
from mailismus.deliver.local.pace import SLOW_S, DeliveryPace
from mailismus.deliver.local.turns import Turns
from mailismus.deliver.local.watch import HangWatch
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.shares import PoolShares
from mailismus.deliver.settling import Settling
from mailismus.disk.posix import PosixDisk
from mailismus.errors import MailboxFull, StorageError
from mailismus.mail.ids import QueueId
from mailismus.mail.outcome import Outcome, OutcomeKind, RetryClass
from mailismus.mail.reply import Reply
from mailismus.maildir.names import strategy_of
from mailismus.maildir.store import MaildirStore

_USUAL = RetryClass.USUAL  # a name of the module: an attribute of an enum is slow in Python 3.11
CHECK_S = 5.0
"""Seconds between two checks of deliveries under way and waiting jobs."""

SLOW_AFTER_S = 5.0
GIVE_BACK_S = 10.0
LOCAL = b"local"
"""The host of a local delivery's outcome."""

DELIVERED = Reply(250, b"2.1.5", b"delivered to maildir")
UNREADABLE = Reply(451, b"4.3.0", b"the message can't be read now")
_IN_DOUBT = Reply(451, b"4.3.0", b"server stopped during delivery: the message may have been delivered")


class LocalDeliveries:
    """All local deliveries."""

    _log = Logger()

    def __init__(
        self,
        deposits: Deposits,
        watch: HangWatch,
        queue: DeliveryQueue,
        settling: Settling,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        held: HeldEntries,
        limits: ScheduleLimits,
    ) -> None:
        self._deposits, self._watch, self._underway = deposits, watch, watch.underway
        self._queue, self._settling = queue, settling
        self._clock, self._monotonic = clock, monotonic
        self._held = held
        self._turns = Turns(self._underway.moving_of)
        self._shares = PoolShares(limits, LIMIT)
        self._pace = DeliveryPace(LIMIT)
        self._next_check: IDelayedCall | None = None
        self._next_slow: IDelayedCall | None = None
        self._waits_to_begin = self._is_dispatching = self._is_stopping = False
        self._when_empty: Deferred[None] | None = None

    @property
    def stuck(self) -> int:
        """Deliveries that have not moved for `STUCK_AFTER_S`."""
        return len(self._underway.stuck(self._monotonic()))

    @property
    def longest_s(self) -> float:
        """Longest time without progress of a delivery under way, in seconds."""
        return self._underway.longest_s(self._monotonic())

    @property
    def most(self) -> int:
        """Deliveries that may move at a time, as of now."""
        return sum(self.moving_of.values()) + max(0, self._room)

    @property
    def has_room(self) -> bool:
        """Whether fewer move."""
        return self._room > 0

    @property
    def _room(self) -> int:
        return self._underway.room(self._pace.limit, self._monotonic() - SLOW_S)

    @property
    def moving_of(self) -> Mapping[bytes, int]:
        """Number of moving deliveries by user."""
        return self._underway.moving_of

    def waiting_jobs(self) -> Mapping[Job, bytes]:
        """Jobs that wait for their turn, with their users."""
        return self._turns.users

    def underway_jobs(self) -> Mapping[Job, bytes]:
        """Jobs that have begun, with their users."""
        return self._underway.users()

    def blockage_of(self, user: bytes, now: float) -> Blockage | None:
        """Why a user gets no delivery now; None: he may."""
        return self._underway.blockage_of(user, now)

    def notes(self) -> dict[QueueId, bytes]:
        """Why each stuck entry waits, for lists."""
        return self._watch.notes(self._monotonic())

    def add(self, user: bytes, job: Job) -> None:
        """Queue a job of one entry for this user; call `dispatch` when all are added."""
        self._turns.add(user, job)

    def dispatch(self) -> None:
        """Begin the deliveries that may begin."""
        if self._is_dispatching or self._is_stopping:
            return
        self._is_dispatching = True
        try:
            while self._turns.waiting:
                room = self._room
                if room <= 0:
                    self._go_on_beside_slow_ones()
                    break
                if not self._settling.may_begin:
                    self._wait_to_begin()
                    break
                turn = self._turns.take(partial(self._may_go, room))
                if turn is None:
                    break
                self._serve(*turn, self._monotonic())
        finally:
            self._is_dispatching = False
        self._schedule_check()

    def reload(self, store: MessageStoreSettings) -> None:
        """Use another location of maildirs for later deliveries. Jobs that have not begun are given back where it changes:
        their mail may go to an LMTP server now."""
        if self._deposits.reload(store):
            self._give_back_all()
        self._watch.reload()

    def stop(self) -> Deferred[None]:
        """Begin no more; fires when all deliveries under way are over."""
        self._is_stopping = True
        self._give_back_all()
        if not self._underway:
            self._cancel_check()
            return succeed(None)
        self._when_empty = Deferred()
        return self._when_empty

    def _give_back_all(self) -> None:
        for job in self._turns.take_all():
            self._settling.give_back(job, 0.0)
            self._held.free(job.message.sender, 1)

    def abort(self) -> None:
        """Settle the deliveries under way as in doubt."""
        self._cancel_check()
        now = self._monotonic()
        for job, user in self._underway.end_all().items():
            self._watch.note_abandoned(job, user, now)
            self._settling.counters.count_in_doubt(1)
            self._settling.settle(job, job.entries, _IN_DOUBT, LOCAL)

    # ------------------------------------------------------------------ beginning

    def _may_go(self, room: int, job: Job) -> bool:
        return self._shares.allows(job.message, room)

    def _go_on_beside_slow_ones(self) -> None:
        """Begin others when those under way have gone on for long; at the latest with the next check."""
        if self._next_slow is None or not self._next_slow.active():
            self._next_slow = self._clock.callLater(SLOW_S, self.dispatch)

    def _serve(self, user: bytes, job: Job, now: float) -> None:
        """Begin, park, defer or give back a job of this user."""
        block = self._underway.blockage_of(user, now)
        if not self._queue.may_try(job.message.spool_id):
            self._turns.update(user)
            self._settling.give_back(job, 0.0)
            self._held.free(job.message.sender, 1)
        elif block is None:
            job.begin(now)
            self._underway.begin(job, user)
            self._shares.hold(job.message)
            self._turns.update(user)
            Deferred.fromCoroutine(self._run(job, user))
        elif now - block.since < STUCK_AFTER_S:
            self._turns.park(user, job)
        else:
            self._turns.update(user)
            self._held.free(job.message.sender, 1)
            self._settling.settle_unrouted(job, Outcome(OutcomeKind.DEFERRED, block.reply, LOCAL))

    def _wait_to_begin(self) -> None:
        if not self._waits_to_begin:
            self._waits_to_begin = True
            self._settling.when_may_begin().addCallback(self._resume)

    def _resume(self, _: None) -> None:
        self._waits_to_begin = False
        self.dispatch()

    # ------------------------------------------------------------------ a delivery

    async def _run(self, job: Job, user: bytes) -> None:
        reply = await self._attempt(job, user)
        if job not in self._underway:
            return
        now = self._monotonic()
        self._shares.release(job.message)
        self._watch.note_end(job, reply, now)
        if self._underway.end(job, now, has_answered=reply is not UNREADABLE):
            self._turns.unpark()
        else:
            self._turns.update(user)
        if reply is DELIVERED:
            self._settling.counters.count_local_delivery()
            waited = self._turns.waiting > 0
            self._pace.note(now - job.begun_at, job.message.size_bytes, now, others_waited=waited)
        self._held.free(job.message.sender, 1)
        retry = _USUAL if reply.code < 300 else judge(Event.MAILDIR, reply).retry
        self._settling.settle(job, job.entries, reply, LOCAL, retry=retry)
        if not self._underway and self._when_empty is not None:
            self._cancel_check()
            done, self._when_empty = self._when_empty, None
            done.callback(None)
        self.dispatch()

    async def _attempt(self, job: Job, user: bytes) -> Reply:
        """Deliver a job and return the reply that decides it."""
        try:
            content = self._queue.read(job.message.spool_id)
            if isinstance(content, bytes):
                await self._deposits.put_whole(job, user, content)
            else:
                await self._deposits.put_pieces(job, user, content, lambda is_reading: self._step(job, is_reading))
            return DELIVERED
        except MailboxFull as full:
            return self._deposits.reply_to_full(full)
        except OSError as error:
            self._log.warn(
                "{spool_id}: a local delivery failed: {error}", spool_id=f"{job.message.spool_id:016X}", error=str(error)
            )
            return reply_to_error(error)
        except StorageError as error:
            self._log.warn(
                "{spool_id}: the message can't be read: {error}", spool_id=f"{job.message.spool_id:016X}", error=str(error)
            )
            return UNREADABLE
        except Exception:  # a bug must not block the entry for ever
            self._log.failure("{spool_id}: a local delivery failed unexpectedly", spool_id=f"{job.message.spool_id:016X}")
            return Reply(451, b"4.3.0", b"local trouble")

    def _step(self, job: Job, is_reading: bool) -> None:
        if job in self._underway:
            self._underway.step(job, self._monotonic(), is_reading=is_reading)

    # ------------------------------------------------------------------ regular checks

    def _schedule_check(self) -> None:
        """Start one timer for all, if there is anything to check."""
        if self._next_check is None and (self._turns.waiting or self._underway):
            self._next_check = self._clock.callLater(CHECK_S, self._check)

    def _cancel_check(self) -> None:
        for timer in (self._next_check, self._next_slow):
            if timer is not None and timer.active():
                timer.cancel()
        self._next_check = self._next_slow = None

    def _check(self) -> None:
        self._next_check = None
        now = self._monotonic()
        self._watch.check(now)
        self._turns.unpark()
        self.dispatch()
        self._give_back_excess(now)
        self._schedule_check()

    def _give_back_excess(self, now: float) -> None:
        """If mail has waited long, give back the jobs beyond its share of the room: other mail needs it."""
        waiting = self._turns.waiting
        if waiting and now - self._turns.oldest_queued_at() > SLOW_AFTER_S:
            for job in self._turns.take_excess(max(LIMIT, (waiting + self._held.room()) // 2)):
                self._settling.give_back(job, GIVE_BACK_S)
                self._held.free(job.message.sender, 1)


def local_deliveries(
    store: MessageStoreSettings,
    name: bytes,
    context: DeliveryContext,
    queue: DeliveryQueue,
    settling: Settling,
    held: HeldEntries,
    limits: ScheduleLimits,
) -> LocalDeliveries:
    """Local deliveries with all that they need. `name`: this host's, for names of files."""
    clock, monotonic, workers = context.clock, context.monotonic, context.local_workers
    maildirs = MaildirStore(PosixDisk(), strategy_of(store.names, name), process_generator())
    deposits = Deposits(store, maildirs, workers, clock, monotonic, name)
    watch = HangWatch(deposits, FileSystems(deposits, workers))
    return LocalDeliveries(deposits, watch, queue, settling, clock, monotonic, held, limits)
