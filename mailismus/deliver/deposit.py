"""Deposits: write one message into one user's maildir, in a thread, and turn an error into a reply.

*Rules*: a message in memory is written by one call in a thread, a large one by a call for each piece. A local failure is
always a 4xx.

*Not here*: the steps of a delivery (`maildir.delivery`), when one begins (`deliver.local`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailismus.config.values.settings import MessageStoreSettings
from mailismus.deliver.job import Job
from mailismus.disk.worker import IWorker
from mailismus.mail.reply import Reply
from mailismus.maildir.delivery import Delivery, begin_delivery
from mailismus.maildir.names import NameSource
from mailismus.maildir.sweep import Sweeper, sweep
from mailismus.queue.interface import IContent

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
    """Writes into the maildirs below `store`. `utc`: the time of day, `monotonic`: seconds that never jump. A failure raises
    `OSError` or `StorageError`."""

    _log = Logger()

    def __init__(
        self,
        store: MessageStoreSettings,
        names: NameSource,
        workers: IWorker,
        utc: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._store, self._names, self._workers, self._utc, self._monotonic = store, names, workers, utc, monotonic
        self._started_at = utc() - monotonic()
        """UTC seconds when the monotonic clock was at 0, as read at start."""
        self._sweeper = Sweeper()

    def reload(self, store: MessageStoreSettings) -> None:
        """Use another location of maildirs for later deposits."""
        self._store = store

    def maildir_of(self, user: bytes) -> str:
        """The path of a user's maildir."""
        return os.path.join(self._store.userpath, os.fsdecode(user), self._store.mailpath)

    def put_whole(self, job: Job, user: bytes, content: bytes) -> Deferred[None]:
        """Deposit a message from memory. Fires when it is durable in the maildir."""
        return self._workers.run(lambda: self._put_whole(job, user, content))

    async def put_pieces(self, job: Job, user: bytes, reading: Deferred[IContent], step: Step) -> None:
        """Deposit a message whose content comes in pieces. Returns when it is durable in the maildir."""
        step(True)
        content = await reading
        delivery: Delivery | None = None
        try:
            step(False)
            delivery = await self._workers.run(lambda: self._begin(job, user))
            while piece := await self._next(content, step):
                step(False)
                await self._workers.run(_writing(delivery, piece))
            step(False)
            await self._workers.run(delivery.finish)
        finally:
            content.close()
            if delivery is not None:
                await self._workers.run(delivery.abandon)

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
        now, steady, store = self._utc(), self._monotonic(), self._store
        head = b"Return-Path: <%b>\nDelivered-To: %b\n" % (job.message.sender, job.entries[0].recipient)
        delivery = begin_delivery(store.userpath, user, store.mailpath, self._names, now, head)
        maildir = self.maildir_of(user)
        if self._sweeper.claim(maildir, steady):
            try:
                sweep(maildir, min(now, self._started_at + steady))  # a clock set forward must not make files look old
            except OSError as error:
                self._log.warn("tmp of {maildir} can't be swept: {error}", maildir=maildir, error=str(error))
        return delivery


def _writing(delivery: Delivery, piece: bytes) -> Callable[[], None]:
    return lambda: delivery.write(piece)
