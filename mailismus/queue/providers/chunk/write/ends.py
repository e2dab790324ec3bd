"""Ends: what only ends entries is written and made durable in one step, beside the batches. Blocks.

    end      lines are marked done, in the envelope too; names of messages that are over go from todo
    barrier  those files, and todo: now, and not before, it counts

A crash repeats what was delivered and is not noted yet, so this waits for no content, and for no second barrier.

*Rules*: no batch under way changes a message of it. Its descriptors of todo and of the file system are its own
(`ChunkDirectories.beside`). Each message is a unit of its own, until the barrier fails. What failed is spoiled, and its next
change, in a batch, writes its files anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IFile, close_read
from mailismus.queue.files.recipient_line import DONE
from mailismus.queue.providers.chunk.format.version import TODO
from mailismus.queue.providers.chunk.index.changes import ChangeKind, FileChange
from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.batch import ChunkBatch, FailedChange
from mailismus.queue.providers.chunk.write.cleaning import Cleaning, CleaningKind
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.syncing import BatchSyncing


@attrs.define(eq=False)
class _Ending:
    change: FileChange
    files: list[IFile] = attrs.Factory(list)


class EndsWriter:
    """Runs one after the other."""

    def __init__(self, directories: ChunkDirectories, syncing: BatchSyncing) -> None:
        self._queue, self._syncing = directories, syncing

    def run(self, changes: Sequence[FileChange]) -> ChunkBatch:
        """Do all of it, and return what became of it. Never raises OSError."""
        batch, barrier = ChunkBatch((), changes, ()), Barrier(self._queue)
        ended = [one for change in changes if (one := self._end(change, batch, barrier)) is not None]
        try:
            self._syncing.sync(barrier)
        except OSError as error:
            batch.note_barrier(error)
            batch.failed += [FailedChange(one.change, is_done=True) for one in ended]
        else:
            batch.left += [_cleaning(one.change) for one in ended if one.change.is_over]
        for one in ended:
            _close(one.files)
        return batch

    def _end(self, change: FileChange, batch: ChunkBatch, barrier: Barrier) -> _Ending | None:
        """Return what the barrier is to make durable; None: it failed."""
        ending = _Ending(change)
        try:
            self._write(ending, barrier)
        except OSError as error:
            for file in ending.files:
                barrier.drop(file)
            _close(ending.files)
            batch.note(error)
            batch.failed.append(FailedChange(change, is_done=False))
            return None
        return ending

    def _write(self, ending: _Ending, barrier: Barrier) -> None:
        change, number = ending.change, ending.change.known.number
        if change.kind is ChangeKind.END_NEW:
            self._queue.of(TODO).unlink(str(number))
            barrier.add_directory(TODO)
        opened: dict[str, IFile] = {}
        for name, offset in change.marks:
            if name not in opened:
                opened[name] = self._queue.of(name, number).open(str(number))
                ending.files.append(opened[name])
                barrier.add(opened[name])
            opened[name].write_at(offset, (DONE,))


def _close(files: Sequence[IFile]) -> None:
    for file in files:
        close_read(file)


def _cleaning(change: FileChange) -> Cleaning:
    is_new = change.kind is ChangeKind.END_NEW
    return Cleaning(change.known.number, CleaningKind.NEW_OVER if is_new else CleaningKind.OVER)
