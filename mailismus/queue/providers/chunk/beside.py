"""A writer beside the server: puts messages into the queue from another process, with or without a running server. Blocks.

    its id (durable) -> S1 -> S2 -> S3 -> todo (durable) -> the lock is given up -> the signal

No lock is held between two writers, nor between a writer and the server: each message is files of its own, and its number
and its id are taken by names that one process alone can make. The lock of writers is shared.

*Rules*: the writer holds the lock of its message until it is durable, or removed after a failed barrier; only then is it the
server's. A server of a queue that was never opened would make its directories: where nothing is there, a start and stop do.

Source: seed 003, `docs/formats/chunk`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from twisted.internet.defer import Deferred

from mailismus.chunks.generator import process_generator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.trigger import pull
from mailismus.errors import StartError, StorageError, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IDraft
from mailismus.queue.entering import entries_of, message_of
from mailismus.queue.files.conversion import refuse_between
from mailismus.queue.files.directories import check_safe
from mailismus.queue.files.free_space import is_below
from mailismus.queue.files.refusals import errors_refuse_start
from mailismus.queue.files.writers import TRIES, WAIT_S, WRITERS, share_with_writers
from mailismus.queue.interface import CommitListener, M, Submission
from mailismus.queue.provider import Placing
from mailismus.queue.providers.chunk.control.admission import as_unavailable
from mailismus.queue.providers.chunk.control.requests import MAX_ENVELOPE_BYTES
from mailismus.queue.providers.chunk.format.files import format_envelope
from mailismus.queue.providers.chunk.format.version import IDS, OWNERSHIP, TRIGGER
from mailismus.queue.providers.chunk.recovery.directories import read_split
from mailismus.queue.providers.chunk.recovery.opening import open_chunks
from mailismus.queue.providers.chunk.write.batch import BatchWriter, ChunkBatch, NewMail
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import take_spool_id
from mailismus.queue.providers.chunk.write.mess import MessWriter, MessWriters
from mailismus.queue.providers.chunk.write.syncing import BatchSyncing
from mailismus.queue.words import check_words


class BesideDraft:
    """`IDraft`: the content streams into its file; an error is told by the commit."""

    def __init__(self, spool_id: SpoolId, writer: MessWriter) -> None:
        self.spool_id, self.writer = spool_id, writer
        self.stored_bytes = 0
        self.error: OSError | None = None

    def write(self, data: bytes) -> Deferred[None] | None:
        self.stored_bytes += len(data)
        if self.error is None:
            try:
                self.writer.append((data,))
            except OSError as error:
                self.error = error
        return None

    def abandon(self) -> None:
        self.writer.discard()


class ChunkBesideWriter:
    """`IQueueWriter`. `now`: UTC seconds."""

    max_envelope_bytes = MAX_ENVELOPE_BYTES

    def __init__(
        self, settings: QueueSettings, disk: IDisk, directories: ChunkDirectories, lock: ILock, now: Callable[[], float]
    ) -> None:
        self._settings, self._disk, self._directories, self._lock, self._now = settings, disk, directories, lock, now
        self._writers = MessWriters(directories, process_generator(), now, is_beside=True)
        presence = directories.presence({os.path.join(directories.root, WRITERS): lock})
        self._batches = BatchWriter(directories, self._writers, presence, BatchSyncing(directories, time.monotonic))

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable`."""
        try:
            if is_below(self._disk.space(self._directories.root), self._settings.minfree):
                raise Unavailable("less space is free than `minfree` asks for", full=True)
            spool_id = take_spool_id(self._directories.of(IDS))
            return BesideDraft(spool_id, self._writers.begin())
        except OSError as error:
            raise as_unavailable(error) from error

    def accept(
        self, draft: IDraft, envelope: Envelope, listener: CommitListener[M], mark: M, placing: Placing | None = None
    ) -> None:
        """Commit it: the listener is told within the call."""
        assert isinstance(draft, BesideDraft)
        submission = Submission(draft, envelope, self._now())
        try:
            error = self._commit(draft, submission if placing is None else placing(submission))
        except StorageError as trouble:
            draft.writer.discard()
            error = trouble
        if error is None:
            pull(os.path.join(self._directories.root, TRIGGER))
            listener.on_durable((mark,), ((),))
        else:
            listener.on_failed((mark,), error)

    def _commit(self, draft: BesideDraft, submission: Submission) -> StorageError | None:
        """None: it is durable. Else nothing of it is in the queue, unless the disk refuses to remove it too."""
        check_words((submission,), (), MAX_ENVELOPE_BYTES)
        try:
            if draft.error is not None:
                raise draft.error
            draft.writer.finish()
        except OSError as error:
            draft.writer.discard()
            return as_unavailable(error)
        envelope = format_envelope(message_of(submission, draft.stored_bytes, []), entries_of(submission), ())
        mail = NewMail(envelope, b"", draft.writer)
        batch = self._batches.run(ChunkBatch([mail], (), ()))
        if mail.error is None:
            return None
        if batch.left:  # a barrier failed, and its name in todo may be durable
            self._batches.run(ChunkBatch((), (), tuple(batch.left)))
            draft.writer.keep()
        return as_unavailable(mail.error)

    def close(self) -> None:
        """Give up the lock and the directories. Harmless when repeated."""
        self._directories.close()
        self._lock.release()


def open_beside(settings: QueueSettings, disk: IDisk, now: Callable[[], float] = time.time) -> ChunkBesideWriter:
    """Open the queue of these settings for writing beside its server. Raises `StartError`: 75 while a repair or a conversion
    holds it, 77 for another user, 78 for a queue of another provider."""
    root = settings.rootpath
    with errors_refuse_start():
        refuse_stranger(disk, _nearest_existing(disk, root))
        if disk.exists(root):
            check_safe(disk, root)
        OWNERSHIP.refuse_foreign(disk, root)
        _open_first(settings, disk)
        lock = share_with_writers(disk, root)
        try:
            refuse_between(disk, root)
            OWNERSHIP.refuse_foreign(disk, root)
            split = read_split(disk, root)
            if split is None:
                raise StartError(os.EX_TEMPFAIL, f"the queue in {root} is changing; try again")
            return ChunkBesideWriter(settings, disk, ChunkDirectories(disk, root, split), lock, now)
        except BaseException:
            lock.release()
            raise


def _nearest_existing(disk: IDisk, path: str) -> str:
    """The directory, or of those above it the first that is there: what is made below it should be its owner's."""
    while not disk.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def refuse_stranger(disk: IDisk, root: str) -> None:
    """Raise `StartError` (77) where the queue belongs to another user; `OSError`."""
    owner = disk.describe(root).owner
    if owner != os.geteuid():
        raise StartError(os.EX_NOPERM, f"{root} belongs to user {owner}: messages are put into it as that user alone")


def _open_first(settings: QueueSettings, disk: IDisk) -> None:
    """Open and close a queue that no start has made yet. Another process may do so now: then wait. Raises `StartError`."""
    for left in reversed(range(TRIES)):
        if _is_open_before(disk, settings.rootpath):
            return
        try:
            open_chunks(settings, disk, settings.conf_split).release()
        except StartError as error:
            if error.status != os.EX_TEMPFAIL or not left:
                raise
            time.sleep(WAIT_S)


def _is_open_before(disk: IDisk, root: str) -> bool:
    """Whether a start has made this queue: its directories, and an epoch of spool ids."""
    if not disk.exists(root) or read_split(disk, root) is None:
        return False
    ids = os.path.join(root, IDS)
    return disk.exists(ids) and bool(disk.list_directory(ids))
