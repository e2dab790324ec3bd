"""All messages and contents of a stopped queue of chunks, one after the other, for a conversion (`IQueueSource`).

*Rules*: one message is in memory at a time, and the names of all. What does not check is told (`damage`): nothing is passed
over in silence, as a listing may. Names that are no inode numbers do no harm: the queue that is read was copied.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import attrs

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.queue.provider import StoredPart
from mailismus.queue.providers.chunk.format.version import IDS, MESS, SPLIT_FILE, TODO, parse_number
from mailismus.queue.providers.chunk.recovery.directories import read_split
from mailismus.queue.providers.chunk.recovery.found import FoundChunk, FoundNames, find_chunks, find_names
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import taken_epochs
from mailismus.spool.message_file import MessageFileReader


class ChunkSource:
    """`IQueueSource`. Made by `open_source`. Nothing stays open between its calls."""

    def __init__(self, disk: IDisk, root: str, split: int) -> None:
        """Raises `OSError`."""
        self._disk, self._root, self._split = disk, root, split
        queue = self._open()
        try:
            self._names = find_names(queue)
            self._epoch = max(taken_epochs(queue.of(IDS)), default=0)
        finally:
            queue.close()
        lost = [path for path in self._names.foreign if parse_number(os.path.basename(path)) is not None]
        self._damage = f"{lost[0]} lies in the part of another number" if lost else ""

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def damage(self) -> str:
        return self._damage

    def parts(self) -> Iterator[StoredPart]:
        queue = self._open()
        try:
            in_todo = {number: names for number, names in self._names.directories.items() if TODO in names}
            new = find_chunks(queue, FoundNames(in_todo, []))
            ended = frozenset(one for chunk in new for one in chunk.ended)
            for chunk in find_chunks(queue, self._names):
                self._note(chunk)
                if chunk.known is None:
                    continue
                message = chunk.known.message
                entries = [
                    entry for number, entry in sorted(chunk.known.entries.items()) if (message.spool_id, number) not in ended
                ]
                if entries:
                    yield StoredPart(attrs.evolve(message, entries=entries), b"%d" % chunk.number)
        finally:
            queue.close()

    def close(self) -> None:
        """Nothing stays open."""

    def content(self, spool_id: SpoolId, content_at: bytes) -> Iterator[bytes]:
        number = int(content_at)
        path = os.path.join(self._root, MESS, str(number % self._split), str(number))
        reader = MessageFileReader(self._disk, path)
        try:
            while piece := reader.read():
                yield piece
        finally:
            reader.close()

    def _open(self) -> ChunkDirectories:
        return ChunkDirectories(self._disk, self._root, self._split)

    def _note(self, found: FoundChunk) -> None:
        """Keep the first damage."""
        if self._damage:
            return
        if found.problems:
            problem = found.problems[0]
            self._damage = f"{problem.path}: {problem.text}"
        elif found.state is None:
            names = ", ".join(sorted(self._names.directories[found.number]))
            self._damage = f"the files of number {found.number}, in {names}, are in no legal state"


def open_source(disk: IDisk, queue_path: str) -> ChunkSource:
    """The queue in this directory. Raises `StartError` (65) for a damaged number of parts, `OSError`: FileNotFoundError
    where there is no queue, or one of its directories or the number of parts is gone."""
    if not disk.exists(os.path.join(queue_path, MESS)):
        raise FileNotFoundError(errno.ENOENT, "no queue is here", queue_path)
    split = read_split(disk, queue_path)
    if split is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.path.join(queue_path, SPLIT_FILE))
    return ChunkSource(disk, queue_path, split)
