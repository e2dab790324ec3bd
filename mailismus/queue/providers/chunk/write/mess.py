"""The content of a message while it arrives: states S1 and S2.

    made in pid, locked (S1) -> linked as mess/N, N the number of its inode; its name in pid goes (S2) -> written -> trailer

*Rules*: the writer holds the lock on the file from its first moment in pid until the message is committed or given up: so
nobody takes what a living writer writes for what a crash left. A file that lost its name in pid before it was locked was
taken for such a one, and another is made. A link, and not a rename: its name in mess is durable with the sync of mess alone.

The writer in another process than the server's keeps its name in pid to the end: if that process is killed, the running
server finds there what it left, and need not read all of mess.

The file is a message file (`spool.message_file`): the content, then a trailer with length and CRC.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Callable, Sequence
from functools import partial

from mailismus.chunks.access import AccessPoint
from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.handler import WriteHandler
from mailismus.chunks.names import InodeStrategy
from mailismus.disk.interface import IFile
from mailismus.queue.providers.chunk.format.version import MESS, PID
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.spool.message_file import encode_trailer

TRIES = 3


class MessWriters:
    """Makes the files of new messages. `now`: UTC seconds."""

    def __init__(
        self,
        directories: ChunkDirectories,
        generator: NameGenerator,
        now: Callable[[], float],
        born: BornNumbers | None = None,
        *,
        is_beside: bool = False,
    ) -> None:
        """`born`: is told of each number, where old ones are being read meanwhile. `is_beside`: this process is not the
        server's."""
        self.directories, self._now, self._born, self._is_beside = directories, now, born, is_beside
        self._access = AccessPoint(directories.of(PID), InodeStrategy(), generator)

    def begin(self) -> MessWriter:
        """A new file in S2. Raises OSError."""
        for _ in range(TRIES):
            chunk = self._access.begin(self._now())
            try:
                number = self._name(chunk)
            except OSError:
                chunk.abandon()
                raise
            if number is not None:
                return BesideWriter(chunk, number, self.directories) if self._is_beside else MessWriter(chunk, number)
            chunk.abandon()
        raise OSError(errno.EAGAIN, "files in pid are removed while they are made")

    def _name(self, chunk: WriteHandler) -> int | None:
        """The number of the file, which has its name in mess now. None: its name in pid was taken away."""
        if not chunk.file.lock() or not chunk.file.describe().links:
            return None
        name = chunk.final_name()
        number, pid = int(name), self.directories.of(PID)
        if self._born is not None:
            self._born.add(number)
        mess = self.directories.of(MESS, number)
        chunk.unit.do(partial(pid.link, chunk.made_name, mess, name), partial(mess.unlink, name))
        if not self._is_beside:
            pid.unlink(chunk.made_name)
        return number


class MessWriter:
    """The content of one message. Raises OSError where it says so."""

    def __init__(self, chunk: WriteHandler, number: int) -> None:
        self._chunk, self.number = chunk, number
        self._crc = 0

    @property
    def file(self) -> IFile:
        """The open, locked file."""
        return self._chunk.file

    def append(self, pieces: Sequence[bytes]) -> None:
        """Append to the content. Durable afterwards: nothing. Raises OSError."""
        for piece in pieces:
            self._chunk.write(piece)
            self._crc = zlib.crc32(piece, self._crc)

    def finish(self) -> None:
        """Write the trailer: the file is whole. Durable afterwards: nothing. Raises OSError."""
        self._chunk.write(encode_trailer(self._chunk.size_bytes, self._crc))

    def discard(self) -> None:
        """Remove the file: it was not committed, and has no other name. Never raises OSError; harmless when repeated."""
        self._chunk.unit.undo()
        self._chunk.abandon()

    def keep(self) -> None:
        """The message is committed: close the file, which gives up its lock."""
        self._chunk.unit.commit()
        self._chunk.abandon()

    def leave(self) -> None:
        """The removal of the message belongs to a cleaning."""
        self.keep()


class BesideWriter(MessWriter):
    """The writer in another process than the server's. Until it is kept or discarded, no server takes the message for one of
    the queue, and nobody removes it."""

    def __init__(self, chunk: WriteHandler, number: int, directories: ChunkDirectories) -> None:
        super().__init__(chunk, number)
        self._directories = directories

    def keep(self) -> None:
        try:
            self._directories.of(PID).unlink(self._chunk.made_name)
        except OSError:
            pass  # a server removes it
        super().keep()

    def leave(self) -> None:
        """Nothing yet: the lock is held until the cleaning has ended."""


class StreamedMess:
    """The content of a message that streams into its file (`spool.stream.StreamedFile`)."""

    def __init__(self, writers: MessWriters) -> None:
        self._writers = writers
        self.writer: MessWriter | None = None
        """Once bytes have come. Read only."""

    def append(self, pieces: Sequence[bytes]) -> None:
        """Append to the content; the first call makes the file. Raises OSError."""
        if self.writer is None:
            self.writer = self._writers.begin()
        self.writer.append(pieces)

    def finish(self, numbers: Sequence[int] = ()) -> None:
        """Complete the file. Durable afterwards: nothing; the barrier of its commit covers it. Raises OSError."""
        self.append(())
        assert self.writer is not None
        self.writer.finish()

    def discard(self) -> None:
        """Remove it. Never raises OSError."""
        if self.writer is not None:
            self.writer.discard()
