"""The naive queue: the queue in memory, and a file beside each message of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.commits import DEFERRED_COMMITS, tell
from mailismus.queue.entering import removals_of
from mailismus.queue.interface import Area, CommitListener, EndedEntries, M, Settlement, Submission
from mailismus.queue.providers.memory.draft import MemoryDraft
from mailismus.queue.providers.memory.provider import MemoryQueue
from tests.naive.files import StoredMail, read_mails, remove_mail, write_mail


class NaiveQueue(MemoryQueue):
    """`IQueue` that claims durability, and has little of it. `clock`: timers, and UTC seconds."""

    def __init__(self, disk: IDisk, root: str, lock: ILock, worker: IWorker, clock: IReactorTime) -> None:
        found = list(read_mails(disk, root))
        epoch = max([int(clock.seconds()) & 0x7FFFFFFF, *((mail.spool_id >> 32) + 1 for mail in found)])
        super().__init__(clock, epoch=epoch)
        self._disk, self._root, self._lock, self._worker = disk, root, lock, worker
        self.writing = 0
        """Commits that are on their way to the disk."""
        for mail in found:
            draft = MemoryDraft(mail.spool_id, self._clock, 0)
            draft.write(mail.content)
            draft.finish()
            self._store(Submission(draft, mail.envelope, mail.received_at), set())

    def close(self) -> Deferred[None]:
        return super().close().addCallback(lambda _: self.release())

    def release(self) -> None:
        """Give up the lock."""
        self._lock.release()

    def count_in(self, area: Area) -> int:
        """Entries of this area."""
        return self._index.count_in(area)

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        together = [*settlements, *removals_of(ended)]
        if not submissions:
            tell(self._settle_all(together), listener, mark)
            return
        mails = []
        for submission in submissions:
            draft = submission.draft
            assert isinstance(draft, MemoryDraft)
            content = b"".join(draft._pieces)
            mails.append(StoredMail(draft.spool_id, submission.envelope, submission.received_at, content))
        self.writing += 1
        written = self._worker.run(partial(self._write, mails)).addBoth(self._on_written)
        tell(Deferred.fromCoroutine(self._commit_written(written, submissions, together)), listener, mark)

    async def _commit_written(
        self, written: Deferred[None], submissions: Sequence[Submission], settlements: Sequence[Settlement]
    ) -> Sequence[SpoolId]:
        try:
            await written
        except OSError as error:
            raise Unavailable(f"the message can't be written: {error}") from error
        await self._commit_in_memory(submissions, ())
        return await self._settle_all(settlements) if settlements else ()

    def _commit_in_memory(
        self, submissions: Sequence[Submission], settlements: Sequence[Settlement]
    ) -> Deferred[Sequence[SpoolId]]:
        done: Deferred[Sequence[SpoolId]] = Deferred()
        super().begin_commit(submissions, settlements, (), DEFERRED_COMMITS, done)
        return done

    def _write(self, mails: Sequence[StoredMail]) -> None:
        for mail in mails:
            write_mail(self._disk, self._root, mail)

    def _on_written(self, result: Failure | None) -> Failure | None:
        self.writing -= 1
        return result

    def _settle_all(self, settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        """Done in memory; the files of the messages that are over go by and by."""
        return self._commit_in_memory((), settlements).addCallback(self._remove)

    def _remove(self, gone: Sequence[SpoolId]) -> Sequence[SpoolId]:
        for spool_id in gone:
            self.writing += 1
            self._worker.run(partial(remove_mail, self._disk, self._root, spool_id)).addBoth(self._on_removed)
        return gone

    def _on_removed(self, result: object) -> None:
        """A file that can't be removed stays."""
        self.writing -= 1
