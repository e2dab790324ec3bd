"""Ends: what only ends entries is written at once, and made durable by one barrier, beside the batches. Blocks.

    write    lines are marked done, in the envelope too; names of messages that are over go from todo
    sync     a barrier over those files, and todo: now, and not before, it counts

A crash repeats what was delivered and is not noted yet, so this waits for no content, and for no second barrier.

*Rules*: no batch under way changes a message of it. Its descriptors of todo and of the file system are its own
(`EndsDirectories`). Each message is a unit of its own, until the barrier fails. What failed is spoiled, and its next
change, in a batch, writes its files anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IFile, close_read
from mailismus.queue.providers.chunk.format.version import TODO
from mailismus.queue.providers.chunk.index.changes import ChangeKind, FileChange
from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.batch import ChunkBatch, FailedChange
from mailismus.queue.providers.chunk.write.cleaning import cleanings_of
from mailismus.queue.providers.chunk.write.directories import EndsDirectories
from mailismus.queue.providers.chunk.write.marks import mark_done
from mailismus.queue.providers.chunk.write.syncing import BatchSyncing


@attrs.define(eq=False)
class _Ending:
    change: FileChange
    files: list[IFile] = attrs.Factory(list)


@attrs.define(eq=False)
class WrittenEnds:
    """Changes that are written, and wait for their barrier; and those that failed."""

    changes: Sequence[FileChange]
    ended: list[_Ending] = attrs.Factory(list)
    failed: list[FileChange] = attrs.Factory(list)
    error: OSError | None = None
    """The first error."""

    def fail(self, change: FileChange, error: OSError) -> None:
        """This one is not written."""
        self.error = self.error or error
        self.failed.append(change)


class EndsWriter:
    """`write` while another thread is in `make_durable`, so that a kill finds written what waits for the disk."""

    def __init__(self, directories: EndsDirectories, syncing: BatchSyncing) -> None:
        self._queue, self._syncing = directories, syncing

    def write(self, changes: Sequence[FileChange]) -> WrittenEnds:
        """Write them. Never raises OSError."""
        written = WrittenEnds(changes)
        for change in changes:
            ending = _Ending(change)
            try:
                self._write(ending)
            except OSError as error:
                _close(ending.files)
                written.fail(change, error)
            else:
                written.ended.append(ending)
        return written

    def make_durable(self, written: Sequence[WrittenEnds]) -> ChunkBatch:
        """Make all of them durable, and return what became of them. Never raises OSError."""
        batch, barrier = ChunkBatch((), [change for one in written for change in one.changes], ()), Barrier(self._queue)
        for one in written:
            if one.error is not None:
                batch.note(one.error)
            batch.failed.extend(FailedChange(change, is_done=False) for change in one.failed)
        ended = [ending for one in written for ending in one.ended]
        for ending in ended:
            if ending.change.kind is ChangeKind.END_NEW:
                barrier.add_directory(TODO)
            for file in ending.files:
                barrier.add(file)
        try:
            self._syncing.sync(barrier)
        except OSError as error:
            batch.note_barrier(error)
            batch.failed.extend(FailedChange(ending.change, is_done=True) for ending in ended)
        else:
            for ending in ended:
                batch.left.extend(cleanings_of(ending.change))
        for ending in ended:
            _close(ending.files)
        return batch

    def _write(self, ending: _Ending) -> None:
        change = ending.change
        if change.kind is ChangeKind.END_NEW:
            self._queue.of(TODO).unlink(str(change.known.number))
        mark_done(self._queue, change, ending.files.append)


def _close(files: Sequence[IFile]) -> None:
    for file in files:
        close_read(file)
