"""The message file: one message's content at rest in its silo.

The content as it came over the wire, then one line of our own, which is not part of it: `MSG 1 LENGTH CRC32` in fixed
width, so that a file cut short or damaged is seen. A file without that line belongs to a message that was never
committed. Everything here blocks: it runs in a worker.

Source: `docs/formats/message`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from mailismus.disk.interface import IDisk, IFile
from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.spool.silo import message_path, silo_path

TRAILER_SIZE = 36
_TRAILER = re.compile(rb"MSG 1 ([0-9]{20}) ([0-9a-f]{8})\n")
PIECE_SIZE = 65536
"""Bytes read at once."""


def encode_trailer(size_bytes: int, crc: int) -> bytes:
    """The last line of a message file."""
    return b"MSG 1 %020d %08x\n" % (size_bytes, crc)


class MessageFileWriter:
    """A message file while it is written."""

    def __init__(self, disk: IDisk, root: str, spool_id: SpoolId) -> None:
        self._disk = disk
        self._root = root
        self._spool_id = spool_id
        self._file: IFile | None = None
        self._size = 0
        self._crc = 0

    def append(self, pieces: Sequence[bytes]) -> None:
        """More of the content; the first call makes the file. Durable afterwards: nothing."""
        if self._file is None:
            self._file = self._disk.create(message_path(self._root, self._spool_id))
        self._file.write_at(self._size, pieces)
        for piece in pieces:
            self._crc = zlib.crc32(piece, self._crc)
            self._size += len(piece)

    @property
    def path(self) -> str:
        """Of the file."""
        return message_path(self._root, self._spool_id)

    def finish(self) -> None:
        """No more comes. Durable afterwards: the content and the file's name."""
        file = self._end()
        file.sync()
        self._disk.sync_directory(silo_path(self._root, self._spool_id))
        file.close()

    def close_unsynced(self) -> str:
        """No more comes; gives the path. Durable afterwards: nothing; sync the file and its silo."""
        self._end().close()
        return self.path

    def _end(self) -> IFile:
        if self._file is None:
            self.append([])
        assert self._file is not None
        self._file.write_at(self._size, [encode_trailer(self._size, self._crc)])
        return self._file

    def discard(self) -> None:
        """Remove it, finished or not. Harmless when there is none."""
        if self._file is not None:
            self._file.close()
            remove_message_file(self._disk, self._root, self._spool_id)


def remove_message_file(disk: IDisk, root: str, spool_id: SpoolId) -> None:
    """Unlink it; harmless when it is gone. Durable afterwards: nothing, and nothing needs it to be."""
    try:
        disk.unlink(message_path(root, spool_id))
    except FileNotFoundError:
        pass


class MessageFileReader:
    """A message file opened for reading, from its start to its end."""

    def __init__(self, disk: IDisk, path: str) -> None:
        """Raises OSError, or `Corrupt` when the file is shorter or longer than it says."""
        self._path = path
        self._file = disk.open(self._path)
        try:
            self.size_bytes, self._wanted_crc = self._read_trailer()
        except BaseException:
            self._file.close()
            raise
        self._offset = 0
        self._crc = 0

    def _read_trailer(self) -> tuple[int, int]:
        content_size = self._file.size() - TRAILER_SIZE
        found = _TRAILER.fullmatch(self._file.read_at(max(0, content_size), TRAILER_SIZE + 1))
        if found is None or int(found[1]) != content_size:
            raise Corrupt(self._path, max(0, content_size), "the message file is not whole")
        return content_size, int(found[2], 16)

    def read(self) -> bytes:
        """The next piece; empty at the end. Raises OSError, or `Corrupt` in place of the last when they do not check."""
        piece = self._file.read_at(self._offset, min(PIECE_SIZE, self.size_bytes - self._offset))
        if not piece and self._offset < self.size_bytes:
            raise Corrupt(self._path, self._offset, "the message file ends early")
        self._offset += len(piece)
        self._crc = zlib.crc32(piece, self._crc)
        if self._offset == self.size_bytes and self._crc != self._wanted_crc:
            raise Corrupt(self._path, 0, "the message file's content does not check")
        return piece

    def close(self) -> None:
        """Harmless when repeated."""
        self._file.close()
