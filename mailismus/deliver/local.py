"""Local deliveries: into the maildirs of users, by a few threads.

*Rules*: one recipient, one file; at most `LIMIT` at once, the others wait in order; local trouble is always 4xx. A message
at hand is handed to a thread in one act, a large one piece by piece. A stop gives back what has not begun and waits
for what has: once begun it can't be cut off, and unanswered it is in doubt.

*Not here*: the steps of a delivery (`maildir.delivery`).
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from mailismus.config.settings import MessageStoreSettings
from mailismus.deliver.job import Job
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.settling import Settling
from mailismus.deliver.workers import WorkRunner
from mailismus.errors import StorageError
from mailismus.mail.reply import Reply
from mailismus.maildir.delivery import Delivery, begin_delivery
from mailismus.maildir.names import NameSource
from mailismus.maildir.sweep import Sweeper, sweep
from mailismus.queue.interface import IContent

LIMIT = 10
SLOW_AFTER_S = 5.0
GIVE_BACK_S = 10.0
LOCAL = b"local"
"""The host of a local delivery's outcome."""

DELIVERED = Reply(250, b"2.1.5", b"delivered to maildir")
UNREADABLE = Reply(451, b"4.3.0", b"the message can't be read now")
_IN_DOUBT = Reply(451, b"4.3.0", b"server stopped during delivery: the message may have been delivered")


def reply_to_error(error: OSError) -> Reply:
    """What local trouble is told as: full file systems and quotas by their own names, all of it 4xx."""
    if error.errno == errno.ENOSPC:
        return Reply(452, b"4.3.1", b"no space for the maildir")
    if error.errno == errno.EDQUOT:
        return Reply(452, b"4.2.2", b"the user's quota is used up")
    return Reply(451, b"4.3.0", b"maildir: " + os.strerror(error.errno or errno.EIO).encode("ascii", "replace"))


class LocalDeliveries:
    """All local deliveries. `on_free` is called with the number of entries that are no longer held here; `room` says how
    many more may be held."""

    _log = Logger()

    def __init__(
        self,
        store: MessageStoreSettings,
        names: NameSource,
        queue: DeliveryQueue,
        settling: Settling,
        workers: WorkRunner,
        utc: Callable[[], float],
        monotonic: Callable[[], float],
        on_free: Callable[[int], None],
        room: Callable[[], int],
    ) -> None:
        self._store, self._names = store, names
        self._queue, self._settling, self._workers = queue, settling, workers
        self._utc, self._monotonic = utc, monotonic
        self._on_free, self._room = on_free, room
        self._sweeper = Sweeper()
        self._started_at = utc() - monotonic()
        """UTC seconds at which the monotonic clock stood at 0, as the start saw it."""
        self._pending: deque[tuple[Job, bytes]] = deque()
        self._running: set[Job] = set()
        self._waits_to_begin = False
        self._is_stopping = False
        self._when_empty: Deferred[None] | None = None

    def add(self, user: bytes, job: Job) -> None:
        """Deliver this job of one entry to this user; call `dispatch` when all are added."""
        self._pending.append((job, user))

    def dispatch(self) -> None:
        """Get going. What waits beyond its share of the room while the first has waited long is given back."""
        while self._pending and len(self._running) < LIMIT and not self._is_stopping:
            if not self._queue.may_begin:
                if not self._waits_to_begin:
                    self._waits_to_begin = True
                    self._queue.when_may_begin().addCallback(self._go_on)
                break
            job, user = self._pending.popleft()
            self._running.add(job)
            Deferred.fromCoroutine(self._run(job, user))
        if self._pending and self._monotonic() - self._pending[0][0].queued_at > SLOW_AFTER_S:
            while len(self._pending) > max(self._room(), LIMIT):
                job, _ = self._pending.pop()
                self._settling.give_back(job, GIVE_BACK_S)
                self._on_free(1)

    def reload(self, store: MessageStoreSettings) -> None:
        """Another place for maildirs, for deliveries to come."""
        self._store = store

    def stop(self) -> Deferred[None]:
        """Begin nothing more; fires when what has begun is over."""
        self._is_stopping = True
        pending, self._pending = self._pending, deque()
        for job, _ in pending:
            self._settling.give_back(job, 0.0)
            self._on_free(1)
        if not self._running:
            return succeed(None)
        self._when_empty = Deferred()
        return self._when_empty

    def abort(self) -> None:
        """What is under way is in doubt."""
        running, self._running = self._running, set()
        for job in running:
            self._settling.counters.in_doubt += 1
            self._settling.settle(job, job.entries, _IN_DOUBT, LOCAL)

    def _go_on(self, _: None) -> None:
        self._waits_to_begin = False
        self.dispatch()

    async def _run(self, job: Job, user: bytes) -> None:
        job.begun_at = self._monotonic()
        try:
            reply = await self._deliver(job, user)
        except OSError as error:
            self._log.warn(
                "{spool_id}: a local delivery failed: {error}", spool_id=f"{job.message.spool_id:016X}", error=str(error)
            )
            reply = reply_to_error(error)
        except StorageError as error:
            self._log.warn(
                "{spool_id}: the message can't be read: {error}", spool_id=f"{job.message.spool_id:016X}", error=str(error)
            )
            reply = UNREADABLE
        except Exception:  # a bug must not keep the entry for ever
            self._log.failure("{spool_id}: a local delivery failed unexpectedly", spool_id=f"{job.message.spool_id:016X}")
            reply = Reply(451, b"4.3.0", b"local trouble")
        if job not in self._running:
            return
        self._running.discard(job)
        self._settling.counters.local_deliveries += reply is DELIVERED
        self._on_free(1)
        self._settling.settle(job, job.entries, reply, LOCAL)
        if not self._running and self._when_empty is not None:
            done, self._when_empty = self._when_empty, None
            done.callback(None)
        self.dispatch()

    async def _deliver(self, job: Job, user: bytes) -> Reply:
        content = self._queue.read(job.message.spool_id)
        if isinstance(content, bytes):
            whole = content
            await self._workers.run(lambda: self._deliver_whole(job, user, whole))
        else:
            await self._deliver_pieces(job, user, await content)
        return DELIVERED

    async def _deliver_pieces(self, job: Job, user: bytes, content: IContent) -> None:
        delivery: Delivery | None = None
        try:
            delivery = await self._workers.run(lambda: self._begin(job, user))
            while piece := await content.next():
                await self._workers.run(_writing(delivery, piece))
            await self._workers.run(delivery.finish)
        finally:
            content.close()
            if delivery is not None:
                await self._workers.run(delivery.abandon)

    # ------------------------------------------------------------------ in a worker's thread

    def _deliver_whole(self, job: Job, user: bytes, content: bytes) -> None:
        delivery = self._begin(job, user)
        try:
            delivery.write(content)
            delivery.finish()
        finally:
            delivery.abandon()

    def _begin(self, job: Job, user: bytes) -> Delivery:
        now, steady = self._utc(), self._monotonic()
        head = b"Return-Path: <%b>\nDelivered-To: %b\n" % (job.message.sender, job.entries[0].recipient)
        delivery = begin_delivery(self._store.userpath, user, self._store.mailpath, self._names, now, head)
        maildir = os.path.join(self._store.userpath, os.fsdecode(user), self._store.mailpath)
        if self._sweeper.is_due(maildir, steady):
            try:
                sweep(maildir, min(now, self._started_at + steady))  # old by a clock that was set is not old
            except OSError as error:
                self._log.warn("tmp of {maildir} can't be swept: {error}", maildir=maildir, error=str(error))
        return delivery


def _writing(delivery: Delivery, piece: bytes) -> Callable[[], None]:
    return lambda: delivery.write(piece)
