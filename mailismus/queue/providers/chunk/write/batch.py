"""A batch: the files of all messages that came or changed since the last one, made durable together. Blocks.

    make     contents and envelopes of new messages; files of preprocessed ones; lines appended
    barrier  all of that, and its directories
    commit   new messages get their names in todo; names in todo of preprocessed messages go; lines are marked done
    barrier  todo, and the files with marks: now, and not before, the batch counts
    anew     what is written anew takes two steps more, each with a barrier (`anew`)

*Rules*: each message is a unit of its own: one that fails takes no other along, until a barrier fails. A file whose sync
failed is never synced again: its message is spoiled, and the next change writes its files anew. Names that no state needs go
with the barriers of a later batch (`cleaning`).

*Not here*: what a change is (`index.changes`), when a batch begins (`control.work`), what only ends entries (`write.ends`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from mailismus.chunks.unit import WorkUnit
from mailismus.disk.interface import IFile, close_read
from mailismus.disk.presence import Missing, Presence
from mailismus.queue.providers.chunk.format.files import format_info
from mailismus.queue.providers.chunk.format.version import INFO, INTD, MESS, TODO
from mailismus.queue.providers.chunk.index.changes import FILES, ChangeKind, FileChange
from mailismus.queue.providers.chunk.write.anew import drop_old, make_anew, put_first, put_others, remove_others
from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.cleaning import Cleaner, Cleaning, CleaningKind, cleanings_of
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.marks import mark_done
from mailismus.queue.providers.chunk.write.mess import MessWriter, MessWriters
from mailismus.queue.providers.chunk.write.syncing import BatchSyncing


@attrs.define(eq=False)
class NewMail:
    """A new message's part of a batch. `content`: all of it, while `writer` is None; else the writer has it, whole."""

    envelope: bytes
    content: bytes
    writer: MessWriter | None = None
    unit: WorkUnit = attrs.Factory(WorkUnit)
    error: OSError | None = None
    """Why it failed; None: it is committed, if the batch has run."""

    def keep_in(self, writer: MessWriter) -> None:
        """The content is in this file."""
        self.writer = writer

    def fail(self, error: OSError) -> None:
        """It is not committed."""
        self.error = error

    @property
    def number(self) -> int:
        """Of its files, when it is committed."""
        assert self.writer is not None
        return self.writer.number


@attrs.define(eq=False)
class _Doing:
    """A change under way."""

    change: FileChange
    unit: WorkUnit = attrs.Factory(WorkUnit)
    files: list[IFile] = attrs.Factory(list)


@attrs.frozen
class FailedChange:
    """A change that does not count. `is_done`: it is done, and not durable."""

    change: FileChange
    is_done: bool


@attrs.define(eq=False)
class ChunkBatch:
    """What is done together, and after `run` what became of it."""

    mails: Sequence[NewMail]
    changes: Sequence[FileChange]
    cleanings: Sequence[Cleaning]
    failed: list[FailedChange] = attrs.Factory(list)
    left: list[Cleaning] = attrs.Factory(list)
    """What goes with a later batch."""
    error: OSError | None = None
    """The first error."""
    has_barrier_failed: bool = False
    """Whether nothing of it could be made durable, whichever message it was of."""

    def note(self, error: OSError) -> None:
        """Something of it failed."""
        self.error = self.error or error

    def note_barrier(self, error: OSError) -> None:
        """A barrier failed."""
        self.note(error)
        self.has_barrier_failed = True


class BatchWriter:
    """Runs batches, one at a time."""

    def __init__(
        self, directories: ChunkDirectories, writers: MessWriters, presence: Presence, syncing: BatchSyncing
    ) -> None:
        """`presence`: of what must keep its name. New messages below a directory that a start would not find would be
        lost."""
        self._queue, self._writers, self._presence, self._syncing = directories, writers, presence, syncing
        self._cleaner = Cleaner(directories)

    def run(self, batch: ChunkBatch) -> ChunkBatch:
        """Do all of it. Never raises OSError."""
        barrier = Barrier(self._queue)
        cleanings = self._cleaner.begin(batch.cleanings, barrier)
        going = self._make(batch, barrier)
        is_durable = self._sync(batch, barrier)
        if not is_durable:
            self._fail_all(batch, batch.mails, going)
            going = []
        barrier = Barrier(self._queue)
        if is_durable:
            cleanings = self._cleaner.go_on(cleanings, barrier)
        linked, going = self._commit(batch, going, barrier)
        if not self._sync(batch, barrier):
            self._fail_all(batch, linked, going, is_done=True)
            linked, going, is_durable = [], [], False
        for step in (self._put_others, self._drop_old):
            going = self._go_on_anew(batch, going, step)
        cleanings = self._cleaner.end(cleanings) if is_durable else []
        self._keep(batch, linked, going)
        error = self._cleaner.take_error()
        if error is not None:
            batch.note(error)
        cleaned = set(map(id, cleanings))
        batch.left.extend(cleaning for cleaning in batch.cleanings if id(cleaning) not in cleaned)
        return batch

    def _sync(self, batch: ChunkBatch, barrier: Barrier) -> bool:
        try:
            self._syncing.sync(barrier)
        except OSError as error:
            batch.note_barrier(error)
            return False
        return True

    # ------------------------------------------------------------------ make

    def _make(self, batch: ChunkBatch, barrier: Barrier) -> list[_Doing]:
        missing = self._missing() if batch.mails else None
        for mail in batch.mails:
            try:
                if missing is not None:
                    raise missing
                self._make_mail(mail, barrier)
            except OSError as error:
                self._fail_mail(batch, mail, error)
        going = []
        for change in batch.changes:
            doing = _Doing(change)
            try:
                self._make_change(doing, barrier)
            except OSError as error:
                self._fail_change(batch, doing, error, barrier)
            else:
                going.append(doing)
        return going

    def _missing(self) -> OSError | None:
        try:
            self._presence.check()
        except Missing as error:
            return error
        return None

    def _make_mail(self, mail: NewMail, barrier: Barrier) -> None:
        if mail.writer is None:
            mail.keep_in(writer := self._writers.begin())
            writer.append((mail.content,))
            writer.finish()
        assert mail.writer is not None
        number = mail.number
        envelope = self._create(INTD, number, mail.unit)
        try:
            envelope.write_at(0, (mail.envelope,))
        except OSError:
            close_read(envelope)
            raise
        barrier.add(mail.writer.file)
        barrier.add(envelope, is_last=True)
        barrier.add_directory(MESS, number)
        barrier.add_directory(INTD)

    def _make_change(self, doing: _Doing, barrier: Barrier) -> None:
        change, number = doing.change, doing.change.known.number
        if change.kind is ChangeKind.REWRITE:
            make_anew(self._queue, change, doing.unit, doing.files.append, barrier)
            return
        files = dict(change.files)
        if change.kind in (ChangeKind.PREPROCESS, ChangeKind.END_NEW) and change.known.is_spoiled:
            # END_NEW: of an attempt to preprocess it
            remove_others(self._queue, change, (*FILES, INFO) if change.kind is ChangeKind.END_NEW else FILES, barrier)
        if change.kind is ChangeKind.PREPROCESS:
            files[INFO] = format_info(change.known.message)
        for name, data in files.items():
            offset = change.offsets.get(name, 0)
            if offset:
                file = self._queue.of(name, number).open(str(number))
            else:
                file = self._create(name, number, doing.unit)
                barrier.add_directory(name, number)
            doing.files.append(file)
            file.write_at(offset, (data,))
            barrier.add(file)

    def _create(self, name: str, number: int, unit: WorkUnit) -> IFile:
        """Make a file of a message; what has its name was left by an attempt that failed, and never counted."""
        directory, text = self._queue.of(name, number), str(number)
        try:
            file = directory.create(text)
        except FileExistsError:
            directory.unlink(text)
            file = directory.create(text)
        unit.do(lambda: None, partial(directory.unlink, text))
        return file

    # ------------------------------------------------------------------ commit

    def _commit(self, batch: ChunkBatch, made: Sequence[_Doing], barrier: Barrier) -> tuple[list[NewMail], list[_Doing]]:
        """Return the messages and changes that the barrier will make durable."""
        linked: list[NewMail] = []
        intd, todo = self._queue.of(INTD), self._queue.of(TODO)
        for mail in batch.mails:
            if mail.error is not None:
                continue
            name = str(mail.number)
            try:
                mail.unit.do(partial(intd.link, name, todo, name), partial(todo.unlink, name))
            except OSError as error:
                self._fail_mail(batch, mail, error)
            else:
                linked.append(mail)
                barrier.add_directory(TODO)
        going: list[_Doing] = []
        for doing in made:
            try:
                self._commit_change(doing, barrier)
            except OSError as error:
                self._fail_change(batch, doing, error, barrier)
            else:
                going.append(doing)
        return linked, going

    def _commit_change(self, doing: _Doing, barrier: Barrier) -> None:
        change, number = doing.change, doing.change.known.number
        if change.kind in (ChangeKind.PREPROCESS, ChangeKind.END_NEW) or change.known.is_todo_unsure:
            try:
                self._queue.of(TODO).unlink(str(number))
            except FileNotFoundError:
                pass  # an attempt before this one, whose barrier failed
            barrier.add_directory(TODO)
        if change.kind is ChangeKind.REWRITE:
            put_first(self._queue, change, barrier)
            return

        def keep(file: IFile) -> None:
            doing.files.append(file)
            barrier.add(file)

        mark_done(self._queue, change, keep)

    # ------------------------------------------------------------------ written anew

    def _go_on_anew(
        self, batch: ChunkBatch, going: Sequence[_Doing], step: Callable[[_Doing, Barrier], None]
    ) -> list[_Doing]:
        """The next step of what is written anew, and its barrier. Return the changes that go on, the others too."""
        barrier, stepped = Barrier(self._queue), list[_Doing]()
        for doing in going:
            if doing.change.kind is not ChangeKind.REWRITE:
                continue
            try:
                step(doing, barrier)
            except OSError as error:
                self._fail_change(batch, doing, error, barrier)
            else:
                stepped.append(doing)
        if not self._sync(batch, barrier):
            self._fail_all(batch, (), stepped)
        failed = {id(one.change) for one in batch.failed}
        return [doing for doing in going if id(doing.change) not in failed]

    def _put_others(self, doing: _Doing, barrier: Barrier) -> None:
        put_others(self._queue, doing.change, barrier)

    def _drop_old(self, doing: _Doing, barrier: Barrier) -> None:
        drop_old(self._queue, doing.change, barrier)

    # ------------------------------------------------------------------ ends

    def _keep(self, batch: ChunkBatch, linked: Sequence[NewMail], going: Sequence[_Doing]) -> None:
        for mail in linked:
            mail.unit.commit()
            assert mail.writer is not None
            mail.writer.keep()
        for doing in going:
            doing.unit.commit()
            for file in doing.files:
                close_read(file)
            batch.left.extend(cleanings_of(doing.change))

    def _fail_all(
        self, batch: ChunkBatch, mails: Sequence[NewMail], going: Sequence[_Doing], *, is_done: bool = False
    ) -> None:
        """A barrier failed."""
        assert batch.error is not None
        for mail in mails:
            self._fail_mail(batch, mail, batch.error, keeps_number=True)
        for doing in going:
            self._fail_change(batch, doing, batch.error, None, is_done=is_done)

    def _fail_mail(self, batch: ChunkBatch, mail: NewMail, error: OSError, *, keeps_number: bool = False) -> None:
        """Undo a new message. `keeps_number`: a barrier failed. Its names go later, in order: its name in todo may be
        durable, and the next message shall not get the same number, where the disk may be bad."""
        if mail.error is not None:
            return
        mail.fail(error)
        batch.note(error)
        writer = mail.writer
        if keeps_number and writer is not None:
            mail.unit.commit()
            writer.leave()
            batch.left.append(Cleaning(writer.number, CleaningKind.REFUSED))
            return
        mail.unit.undo()
        if writer is not None:
            writer.discard()

    def _fail_change(
        self, batch: ChunkBatch, doing: _Doing, error: OSError, barrier: Barrier | None, *, is_done: bool = False
    ) -> None:
        """Take a change as not done; one that is done is not undone. `barrier`: the one that is to come."""
        batch.note(error)
        for file in doing.files:
            if barrier is not None:
                barrier.drop(file)
            close_read(file)
        if is_done:
            doing.unit.commit()
        else:
            doing.unit.undo()
        batch.failed.append(FailedChange(doing.change, is_done))
