"""Reading a queue that no server runs on, here or copied from elsewhere; nothing is changed, no lock is taken.

*Rules*: what can't be read is passed over and told as a gap. Names of a copied queue are no inode numbers any more; they are
read all the same. Nothing is held in memory but one message, and the names of all.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator

import attrs

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Filter, Gap, Message, Page, Summary
from mailismus.queue.providers.chunk.format.version import MESS, TODO
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.recovery.directories import read_split
from mailismus.queue.providers.chunk.recovery.found import FoundNames, find_chunks, find_names
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.stopped import StoppedCursor, StoppedQueue
from mailismus.queue.sums import new_sums, summary_of
from mailismus.spool.message_file import MessageFileReader


class StoppedChunks:
    """Searches and contents of one stopped queue (`queue.stopped.StoppedSearch`)."""

    def __init__(self, queue: ChunkDirectories, names: FoundNames, gaps: Gaps) -> None:
        self._queue, self._names, self._gaps = queue, names, gaps
        self._ended: frozenset[tuple[int, int]] | None = None
        """Entries that envelopes in todo have ended, once they were read."""
        self._numbers: dict[SpoolId, int] = {}
        """The numbers of the messages of the last page."""

    def _messages(self) -> Iterator[KnownChunk]:
        """All of them, without entries that were ended."""
        if self._ended is None:
            todo = {number: names for number, names in self._names.directories.items() if TODO in names}
            found = find_chunks(self._queue, FoundNames(todo, []))
            self._ended = frozenset((one.spool_id, one.number) for chunk in found for one in chunk.ended)
        for chunk in find_chunks(self._queue, self._names):
            self._gaps.add(Gap("file of a message", problem.text, 1, problem.path) for problem in chunk.problems)
            known = chunk.known
            if known is None:
                continue
            for number in [n for n in known.entries if (known.message.spool_id, n) in self._ended]:
                del known.entries[number]
            if known.entries:
                yield known

    async def summarize(self) -> Summary:
        sums = new_sums()
        for known in self._messages():
            for entry in known.entries.values():
                sums[entry.area].add_entry(known.message)
        return summary_of(sums)

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        self._numbers = {}
        cursor = after if isinstance(after, StoppedCursor) else StoppedCursor(self._matching(wanted))
        return cursor.page(limit)

    def _matching(self, wanted: Filter) -> Iterator[Message]:
        """The messages with entries that match."""
        for known in self._messages():
            if wanted.spool_id not in (None, known.message.spool_id):
                continue
            entries = [
                entry
                for _, entry in sorted(known.entries.items())
                if wanted.area in (None, entry.area) and wanted.matches(known.message, entry)
            ]
            if entries:
                self._numbers[known.message.spool_id] = known.number
                yield attrs.evolve(known.message, entries=entries)

    def read(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message that is there, in pieces, in order. Raises `StorageError`, `OSError`."""
        number = self._numbers.get(spool_id)
        if number is None:
            number = next((known.number for known in self._messages() if known.message.spool_id == spool_id), None)
        if number is None:
            raise Unavailable(f"no message {spool_id:016X}")
        reader = MessageFileReader(self._queue.disk, self._queue.path_of(MESS, number))
        try:
            while piece := reader.read():
                yield piece
        finally:
            reader.close()


class StoppedChunkQueue(StoppedQueue):
    """`IStoppedQueue`, which holds the directories open."""

    def __init__(self, queue: ChunkDirectories, stopped: StoppedChunks, gaps: Gaps) -> None:
        super().__init__(stopped, stopped.read, gaps)
        self._queue = queue

    def close(self) -> None:
        self._queue.close()


def open_readonly(queue_path: str, disk: IDisk | None = None) -> StoppedChunkQueue:
    """The queue in this directory. Raises `StartError`, or OSError: FileNotFoundError where there is no queue."""
    disk = disk or PosixDisk(Access.READ_ONLY)
    if not disk.exists(os.path.join(queue_path, MESS)):
        raise FileNotFoundError(errno.ENOENT, "no queue is here", queue_path)
    split = read_split(disk, queue_path)
    if split is None:
        split = sum(name.isdigit() for name in disk.list_directory(os.path.join(queue_path, MESS)))
    queue = ChunkDirectories(disk, queue_path, split)
    try:
        gaps = Gaps()
        return StoppedChunkQueue(queue, StoppedChunks(queue, find_names(queue), gaps), gaps)
    except BaseException:
        queue.close()
        raise
