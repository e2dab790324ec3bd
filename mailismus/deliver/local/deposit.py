"""Deposits: write one message into one user's maildir, in a thread, and turn an error into a reply.

*Rules*: a message in memory is written by one call in a thread, a large one by a call for each piece. A local failure is
always a 4xx.

*Not here*: the steps of a delivery (`maildir.delivery`), when one begins (`deliver.local.deliveries`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailismus.chunks.access import NoFreeName
from mailismus.config.values.settings import MessageStoreSettings, QuotaFull
from mailismus.deliver.jobs.job import Job
from mailismus.disk.worker import IWorker
from mailismus.errors import MailboxFull
from mailismus.mail.reply import Reply
from mailismus.maildir.delivery import Delivery, begin_delivery
from mailismus.maildir.names import count_boots, strategy_of
from mailismus.maildir.store import MaildirStore
from mailismus.maildir.sweep import Sweeper, sweep
from mailismus.queue.content import IContent

WAITS_S = (2.0, 2.0)
"""How long a delivery waits before it looks for another name, each time (seed 003, the third step of a maildir)."""
FULL = b"the mailbox is full: there is room again when its owner has removed some mail"
TOO_LARGE = b"the message is larger than all that the mailbox may hold"

Step = Callable[[bool], None]
"""Called when a step of a deposit begins; True: the step waits for the content, not for the maildir."""


def reply_to_error(error: OSError) -> Reply:
    """The reply to a local error, always 4xx; a full file system and a used-up quota have replies of their own."""
    if error.errno == errno.ENOSPC:
        return Reply(452, b"4.3.1", b"no space for the maildir")
    if error.errno == errno.EDQUOT:
        return Reply(452, b"4.2.2", b"the user's quota is used up")
    return Reply(451, b"4.3.0", b"maildir: " + os.strerror(error.errno or errno.EIO).encode("ascii", "replace"))


class Deposits:
    """Writes into the maildirs below `store`. `clock`: tells UTC, `monotonic`: seconds that never jump. A failure raises
    `OSError` or `StorageError`; `MailboxFull` is none."""

    _log = Logger()

    def __init__(
        self,
        store: MessageStoreSettings,
        maildirs: MaildirStore,
        workers: IWorker,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        host: bytes,
    ) -> None:
        """`host`: for names of files."""
        self._store, self._maildirs, self._workers, self._clock, self._monotonic = store, maildirs, workers, clock, monotonic
        self._host = host
        self._use_names()
        self._started_at = clock.seconds() - monotonic()
        """UTC seconds when the monotonic clock was at 0, as read at start."""
        self._sweeper = Sweeper()

    def reload(self, store: MessageStoreSettings) -> bool:
        """Use another location of maildirs for later deposits. Return whether it is another one."""
        before, self._store = self._store, store
        if (store.names, store.userpath) != (before.names, before.userpath):
            self._use_names()
        return attrs.evolve(store, names=before.names, quota_full=before.quota_full) != before

    def _use_names(self) -> None:
        maildirs, store = self._maildirs, self._store
        maildirs.use_names(strategy_of(store.names, self._host))
        count_boots(maildirs.generator, store.names, maildirs.disk, store.userpath)

    def reply_to_full(self, full: MailboxFull) -> Reply:
        """The reply for mail that a mailbox has no room for: by the configuration it waits, or goes back."""
        is_final = self._store.quota_full is QuotaFull.BOUNCE
        return Reply(552 if is_final else 452, b"5.2.2" if is_final else b"4.2.2", TOO_LARGE if full.is_too_large else FULL)

    def maildir_of(self, user: bytes) -> str:
        """The path of a user's maildir."""
        return os.path.join(self._store.userpath, os.fsdecode(user), self._store.mailpath)

    async def put_whole(self, job: Job, user: bytes, content: bytes) -> None:
        """Deposit a message from memory. Returns when it is durable in the maildir."""
        for wait_s in WAITS_S:
            try:
                return await self._workers.run(lambda: self._put_whole(job, user, content))
            except NoFreeName:
                await deferLater(self._clock, wait_s)
        return await self._workers.run(lambda: self._put_whole(job, user, content))

    async def put_pieces(self, job: Job, user: bytes, reading: Deferred[IContent], step: Step) -> None:
        """Deposit a message whose content comes in pieces. Returns when it is durable in the maildir."""
        step(True)
        content = await reading
        delivery: Delivery | None = None
        try:
            step(False)
            delivery = await self._begin_in_time(job, user)
            while piece := await self._next(content, step):
                step(False)
                await self._workers.run(_writing(delivery, piece))
            step(False)
            await self._workers.run(delivery.finish)
        finally:
            content.close()
            if delivery is not None:
                await self._workers.run(delivery.abandon)

    async def _begin_in_time(self, job: Job, user: bytes) -> Delivery:
        """Begin, and wait where no name is free. No thread waits."""
        for wait_s in WAITS_S:
            try:
                return await self._workers.run(lambda: self._begin(job, user))
            except NoFreeName:
                await deferLater(self._clock, wait_s)
        return await self._workers.run(lambda: self._begin(job, user))

    @staticmethod
    def _next(content: IContent, step: Step) -> Deferred[bytes]:
        step(True)
        return content.next()

    # ------------------------------------------------------------------ in a worker's thread

    def _put_whole(self, job: Job, user: bytes, content: bytes) -> None:
        delivery = self._begin(job, user)
        try:
            delivery.write(content)
            delivery.finish()
        finally:
            delivery.abandon()

    def _begin(self, job: Job, user: bytes) -> Delivery:
        now, steady, store = self._clock.seconds(), self._monotonic(), self._store
        head = b"Return-Path: <%b>\nDelivered-To: %b\n" % (job.message.sender, job.recipients[0])
        delivery = begin_delivery(self._maildirs, store.userpath, user, store.mailpath, now, head, self._monotonic)
        maildir = self.maildir_of(user)
        if self._sweeper.claim(maildir, steady):
            try:
                old_at = min(now, self._started_at + steady)  # a clock set forward must not make files look old
                sweep(self._maildirs, store.userpath, user, store.mailpath, old_at)
            except OSError as error:
                self._log.warn("tmp of {maildir} can't be swept: {error}", maildir=maildir, error=str(error))
        return delivery


def _writing(delivery: Delivery, piece: bytes) -> Callable[[], None]:
    return lambda: delivery.write(piece)
