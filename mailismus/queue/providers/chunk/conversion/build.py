"""A new queue of chunks from messages of another queue (`IQueueBuilder`): all of them in S4, as if they had just come.

begin   the directories and their number of parts
add     a content in `mess`, under the number of its inode, and an envelope in `todo` with a line for each entry that is left
finish  the epoch, above which the first start takes its own; the mark

The server that starts on it preprocesses what stays: it alone knows which recipients are local.
"""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.chunks.generator import NameGenerator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.journal.batch import BLOCK
from mailismus.queue.files.mark import Mark, write_mark
from mailismus.queue.interface import Message
from mailismus.queue.provider import QueueRoom
from mailismus.queue.providers.chunk.format.files import format_envelope
from mailismus.queue.providers.chunk.format.version import (
    FORMATS,
    IDS,
    NAME,
    PLAIN_DIRECTORIES,
    SPLIT_DIRECTORIES,
    TODO,
)
from mailismus.queue.providers.chunk.recovery.directories import ensure_directories
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import format_epoch
from mailismus.queue.providers.chunk.write.mess import MessWriters
from mailismus.spool.message_file import TRAILER_SIZE

_NAME_BYTES = 64
"""Bytes of a name in a directory, at most."""
_FILES = 5
"""Files of a queue without messages, at most: the lock, the mark, the number of parts, two epochs."""


class ChunkBuilder:
    """`IQueueBuilder`. `now`: UTC seconds, for the names of files at their beginning."""

    def __init__(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float, generator: NameGenerator) -> None:
        self._root, self._split, self._disk = settings.rootpath, settings.conf_split, disk
        self._epoch, self._now, self._generator = epoch, now, generator
        self._queue: ChunkDirectories | None = None
        self._writers: MessWriters | None = None

    @property
    def room(self) -> QueueRoom:
        inodes = len(PLAIN_DIRECTORIES) + len(SPLIT_DIRECTORIES) * (self._split + 1) + _FILES
        return QueueRoom(inodes * BLOCK, inodes)

    def room_of(self, message: Message) -> QueueRoom:
        envelope = len(format_envelope(message, message.entries, ()))
        return QueueRoom(_whole(message.stored_bytes + TRAILER_SIZE) + _whole(envelope) + 2 * _NAME_BYTES, 2)

    def begin(self) -> None:
        ensure_directories(self._disk, self._root, self._split)
        self._queue = ChunkDirectories(self._disk, self._root, self._split)
        self._writers = MessWriters(self._queue, self._generator, lambda: self._now)

    def add(self, message: Message, content: Iterator[bytes]) -> None:
        assert self._queue is not None
        assert self._writers is not None
        writer = self._writers.begin()
        try:
            for piece in content:
                writer.append((piece,))
            writer.finish()
            file = self._queue.of(TODO).create(str(writer.number))
            try:
                file.write_at(0, (format_envelope(message, message.entries, ()),))
            finally:
                file.close()
        except BaseException:
            writer.discard()
            raise
        writer.keep()

    def finish(self) -> None:
        assert self._queue is not None
        self._queue.of(IDS).create(format_epoch(self._epoch)).close()
        write_mark(self._disk, self._root, Mark(NAME, FORMATS[-1]))

    def close(self) -> None:
        if self._queue is not None:
            self._queue.close()


def _whole(size_bytes: int) -> int:
    """In whole blocks."""
    return -(-size_bytes // BLOCK) * BLOCK
