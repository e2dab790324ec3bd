"""The message file: one message's content in its silo.

The content as it came over the wire, then a trailer, which is not part of it: the line `MSG 1 LENGTH CRC32` in fixed width,
by which truncation and damage are found. A file without a trailer belongs to a message that was never committed. Its names:
`spool.silo`. Everything here blocks, and runs in a worker.

Source: `docs/formats/message`.
"""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Iterable, Sequence

from mailismus.disk.interface import IDisk, IFile, NameStanding, close_read
from mailismus.errors import Corrupt, newer_format
from mailismus.mail.ids import SpoolId
from mailismus.spool.silo import message_path, parse_message_name, silo_path

TRAILER_SIZE = 36
_TRAILER = re.compile(rb"MSG 1 ([0-9]{20}) ([0-9a-f]{8})\n")
LONGEST_TRAILER = 128
"""Bytes of the last line at most, in every format."""
_NEWEST_FORMAT = 1
_CHECKED_TRAILER = re.compile(rb"MSG ([1-9][0-9]{0,8}) [ -~]* ([0-9a-f]{8})\n").fullmatch
_MAGIC = re.compile(rb"MSG (?=[1-9])")
_CRC_SIZE = 10
"""Bytes of the CRC at the end of a trailer, with the space before it and the LF."""
PIECE_SIZE = 65536
"""Bytes read at once."""
_FIRST_NUMBERS = range(33)
"""Numbers of names that a reader tries before it lists the silo."""


def encode_trailer(size_bytes: int, crc: int) -> bytes:
    """The trailer of a message file."""
    return b"MSG 1 %020d %08x\n" % (size_bytes, crc)


def parse_trailer(data: bytes) -> tuple[int, int] | None:
    """Bytes and CRC of the content by a message file's trailer; None: it is no trailer of format 1."""
    found = _TRAILER.fullmatch(data)
    return None if found is None else (int(found[1]), int(found[2], 16))


def refuse_newer_message(path: str, end: bytes) -> None:
    """Raise `NewerFormat` where the message file that ends with `end` (`LONGEST_TRAILER` bytes, or all of it) was written by
    a newer program: magic, format and, from format 2 on, a CRC of the trailer alone keep their places for ever."""
    for start in _MAGIC.finditer(end):
        line = end[start.start() :]
        found = _CHECKED_TRAILER(line)
        if found is not None and int(found[1]) > _NEWEST_FORMAT and int(found[2], 16) == zlib.crc32(line[:-_CRC_SIZE]):
            raise newer_format(path, int(found[1]), _NEWEST_FORMAT)


class MessageFileWriter:
    """A message file while it is written."""

    def __init__(self, disk: IDisk, root: str, spool_id: SpoolId) -> None:
        self._disk = disk
        self._root = root
        self._spool_id = spool_id
        self._file: IFile | None = None
        self._size = 0
        self._crc = 0
        self._numbers: list[int] = [0]
        """The names it has."""

    def append(self, pieces: Sequence[bytes]) -> None:
        """Append to the content; the first call creates the file. Durable afterwards: nothing."""
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

    def finish(self, numbers: Sequence[int] = ()) -> None:
        """Complete the file. `numbers`: the recipients that get a name each in place of the shared one. Durable afterwards:
        the content and the file's names. Raises OSError, also where the file has lost its name."""
        file = self._end()
        file.sync()
        self._name(numbers)
        self._disk.sync_directory(silo_path(self._root, self._spool_id))
        path = message_path(self._root, self._spool_id, self._numbers[0])
        if file.standing(path) is not NameStanding.NAMED:
            raise FileNotFoundError(errno.ENOENT, "removed or moved away while it was written", path)
        file.close()

    def close_unsynced(self, numbers: Sequence[int] = ()) -> str:
        """Complete the file; returns a path of it. `numbers`: as for `finish`. Durable afterwards: nothing; sync the file
        and its silo."""
        self._end().close()
        self._name(numbers)
        return message_path(self._root, self._spool_id, self._numbers[0])

    def _name(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        first = message_path(self._root, self._spool_id, numbers[0])
        self._numbers.append(numbers[0])
        self._disk.rename(self.path, first)
        self._numbers.remove(0)
        for number in numbers[1:]:
            self._disk.link(first, message_path(self._root, self._spool_id, number))
            self._numbers.append(number)

    def _end(self) -> IFile:
        if self._file is None:
            self.append([])
        assert self._file is not None
        self._file.write_at(self._size, [encode_trailer(self._size, self._crc)])
        return self._file

    def discard(self) -> None:
        """Remove it, finished or not. Harmless when there is none."""
        if self._file is not None:
            close_read(self._file)
            remove_names(self._disk, self._root, self._spool_id, self._numbers)


def remove_message_file(disk: IDisk, root: str, spool_id: SpoolId, number: int = 0) -> bool:
    """Unlink one name of a message file, the last one with its bytes; whether there was such a name. Durable afterwards:
    nothing; it need not be."""
    try:
        disk.unlink(message_path(root, spool_id, number))
    except FileNotFoundError:
        return False
    return True


def remove_names(disk: IDisk, root: str, spool_id: SpoolId, numbers: Iterable[int]) -> None:
    """Unlink these names of a message file; missing ones are ignored. After a failure the others are unlinked all the
    same."""
    error: OSError | None = None
    for number in numbers:
        try:
            remove_message_file(disk, root, spool_id, number)
        except OSError as one:
            error = one
    if error is not None:
        raise error


def remove_every_name(disk: IDisk, root: str, spool_id: SpoolId) -> None:
    """Unlink all names of a message file; harmless when it is gone."""
    if not remove_message_file(disk, root, spool_id):
        remove_names(disk, root, spool_id, find_numbers(disk, root, spool_id))


def find_numbers(disk: IDisk, root: str, spool_id: SpoolId) -> list[int]:
    """Numbers of the recipients with a name of their own for a message file; lists the whole silo."""
    names = map(parse_message_name, disk.list_directory(silo_path(root, spool_id)))
    return sorted(name[1] for name in names if name is not None and name[0] == spool_id)


class MessageFileReader:
    """A message file opened for reading, from its start to its end."""

    def __init__(self, disk: IDisk, path: str) -> None:
        """Raises OSError, `Corrupt` when the file is shorter or longer than it says, or `NewerFormat`."""
        self._path = path
        self._file = disk.open(self._path)
        self._whole: bytes | None = None
        """A small file is read in one act."""
        try:
            self.size_bytes, self._wanted_crc = self._read_trailer()
        except BaseException:
            close_read(self._file)
            raise
        self._offset = 0
        self._crc = 0

    def _read_trailer(self) -> tuple[int, int]:
        content_size = self._file.size() - TRAILER_SIZE
        if 0 <= content_size <= PIECE_SIZE:
            self._whole = self._file.read_at(0, content_size + TRAILER_SIZE)
            found = parse_trailer(self._whole[content_size:])
        else:
            found = parse_trailer(self._file.read_at(max(0, content_size), TRAILER_SIZE + 1))
        if found is None or found[0] != content_size:
            refuse_newer_message(self._path, read_end(self._file))
            raise Corrupt(self._path, max(0, content_size), "the message file is not whole")
        return found

    def read(self) -> bytes:
        """The next piece; empty at the end. Raises OSError, or `Corrupt` in place of the last when they do not check."""
        end = min(self.size_bytes, self._offset + PIECE_SIZE)
        if self._whole is None:
            piece = self._file.read_at(self._offset, end - self._offset)
        else:
            piece = self._whole[self._offset : end]
        if not piece and self._offset < self.size_bytes:
            raise Corrupt(self._path, self._offset, "the message file ends early")
        self._offset += len(piece)
        self._crc = zlib.crc32(piece, self._crc)
        if self._offset == self.size_bytes and self._crc != self._wanted_crc:
            raise Corrupt(self._path, 0, "the message file's content does not check")
        return piece

    def close(self) -> None:
        """Harmless when repeated; never fails."""
        close_read(self._file)


def read_end(file: IFile) -> bytes:
    """The last `LONGEST_TRAILER` bytes of a file. Raises OSError."""
    return file.read_at(max(0, file.size() - LONGEST_TRAILER), LONGEST_TRAILER)


def open_message(disk: IDisk, root: str, spool_id: SpoolId) -> MessageFileReader:
    """Open a message file by any of its names. Raises OSError, `Corrupt` when the file is shorter or longer than it
    says, or `NewerFormat`."""
    for number in _FIRST_NUMBERS:
        try:
            return MessageFileReader(disk, message_path(root, spool_id, number))
        except FileNotFoundError:
            continue
    for number in find_numbers(disk, root, spool_id):
        try:
            return MessageFileReader(disk, message_path(root, spool_id, number))
        except FileNotFoundError:  # settled meanwhile
            continue
    raise FileNotFoundError(errno.ENOENT, "no such message file", message_path(root, spool_id))
