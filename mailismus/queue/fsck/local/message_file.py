"""One message file: whether it is whole, and the repair that makes it so.

*Rules*: a file is repaired only where its trailer and CRC prove the result. A whole file of another size than the entry's
line says, or with another spool id in our own trace field, belongs to another message, and is never sent for this one.

Source: `docs/formats/message`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import partial

import attrs

from mailismus.disk.interface import IDisk, IFile
from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId, format_spool_id
from mailismus.queue.fsck.faults import FaultKind
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.names import try_twice
from mailismus.queue.fsck.local.one_byte import (
    LONGEST_FOR_BIT,
    ByteChange,
    find_change,
    find_one_difference,
)
from mailismus.queue.fsck.local.problems import FileProblem, problem
from mailismus.spool.message_file import PIECE_SIZE, TRAILER_SIZE, MessageFileReader, encode_trailer, parse_trailer


@attrs.frozen
class Examined:
    """State of a message file. `why` empty: it is whole. `cure`: the repair that makes it so."""

    path: str
    why: str = ""
    cure: FileProblem | None = None
    is_unreadable: bool = False
    """Its bytes could not be read: it must not be given up."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it is as it was written."""
        return not self.why


_CRC_DIGITS = 8
"""Of a message file's trailer."""

_TRACE = re.compile(rb"Received: [^\n]*\r\n(?:\t\(using [^\n]*\r\n)?\tby [^\r\n]* id ([0-9A-F]{16})[;\r]").match
"""Our own trace field, the beginning of every message that came over the wire."""


def examine(disk: IDisk, path: str, spool_id: SpoolId, size_bytes: int | None, kinds: type[FaultKind]) -> Examined:
    """Examine a file of this message. `size_bytes`: of content, by the entries' lines; None: not known. Raises
    `NewerFormat`."""
    try:
        return try_twice(lambda: _examine(disk, path, spool_id, size_bytes, kinds))
    except OSError as error:
        return Examined(path, error.strerror or str(error), is_unreadable=True)


def _examine(disk: IDisk, path: str, spool_id: SpoolId, size_bytes: int | None, kinds: type[FaultKind]) -> Examined:
    try:
        reader = MessageFileReader(disk, path)
    except Corrupt as error:
        return _examine_damaged(disk, path, error.text, spool_id, size_bytes, kinds)
    try:
        if size_bytes not in (None, reader.size_bytes):
            return Examined(path, f"the file is of another message: {reader.size_bytes} bytes in place of {size_bytes}")
        other = _other_message(reader.read(), spool_id)
        if other is not None:
            return Examined(path, other)
        while reader.read():
            pass
    except Corrupt as error:
        return _examine_damaged(disk, path, error.text, spool_id, size_bytes, kinds)
    finally:
        reader.close()
    return Examined(path)


def _other_message(beginning: bytes, spool_id: SpoolId) -> str | None:
    """The other message that begins so; None: no other is known."""
    trace = _TRACE(beginning)
    if trace is None or trace[1] == format_spool_id(spool_id).encode():
        return None
    return f"the file is of another message: {trace[1].decode()}"


def _examine_damaged(
    disk: IDisk, path: str, why: str, spool_id: SpoolId, size_bytes: int | None, kinds: type[FaultKind]
) -> Examined:
    file = disk.open(path)
    try:
        if size_bytes is not None and _is_whole_but_longer(file, size_bytes):
            other = _other_message(file.read_at(0, PIECE_SIZE), spool_id)
            return Examined(path, other or why, _cut(file, path, size_bytes, kinds) if other is None else None)
        change = _change(file, size_bytes)
        if change is None:
            return Examined(path, why)
        at = change.position
        beginning = bytearray(file.read_at(0, PIECE_SIZE))
        beginning[at : at + 1] = bytes((change.value,)) if at < len(beginning) else b""
        other = _other_message(bytes(beginning), spool_id)
        return Examined(path, other or why, _byte(path, change, kinds) if other is None else None)
    finally:
        file.close()


def _is_whole_but_longer(file: IFile, size_bytes: int) -> bool:
    """Whether the message is whole, with more bytes behind its trailer."""
    if file.size() <= size_bytes + TRAILER_SIZE:
        return False
    trailer = parse_trailer(file.read_at(size_bytes, TRAILER_SIZE))
    return trailer == (size_bytes, _crc_of(file, size_bytes))


def _cut(file: IFile, path: str, size_bytes: int, kinds: type[FaultKind]) -> FileProblem:
    end = size_bytes + TRAILER_SIZE
    rest = file.size() - end
    return problem(kinds["MESSAGE_LONG"], path, end, partial(actions.cut_off, path, end), size=rest)


def _change(file: IFile, size_bytes: int | None) -> ByteChange | None:
    """The one byte that is wrong, in the trailer or in the content."""
    content_size = file.size() - TRAILER_SIZE
    if content_size < 0 or size_bytes not in (None, content_size):
        return None
    found = file.read_at(content_size, TRAILER_SIZE)
    if not _looks_like_trailer(found, content_size):
        return None  # the file may have any size: do not read all of it
    change = find_one_difference(found, encode_trailer(content_size, _crc_of(file, content_size)))
    if change is not None:
        return ByteChange(content_size + change.position, change.value)
    trailer = parse_trailer(found)
    if trailer is None or trailer[0] != content_size or content_size > LONGEST_FOR_BIT:
        return None
    return find_change(file.read_at(0, content_size), trailer[1])


def _looks_like_trailer(found: bytes, content_size: int) -> bool:
    """Whether this may be the trailer of so much content with one wrong byte; its CRC is not compared."""
    return sum(one != other for one, other in zip(found, encode_trailer(content_size, 0), strict=False)) <= _CRC_DIGITS + 1


def _byte(path: str, change: ByteChange, kinds: type[FaultKind]) -> FileProblem:
    mend = partial(actions.put_right, path, change.position, bytes((change.value,)), 0, None)
    return problem(kinds["MESSAGE_BYTE"], path, change.position, mend)


def _crc_of(file: IFile, size_bytes: int) -> int:
    crc = 0
    for piece in _pieces(file, size_bytes):
        crc = zlib.crc32(piece, crc)
    return crc


def _pieces(file: IFile, size_bytes: int) -> Iterator[bytes]:
    for offset in range(0, size_bytes, PIECE_SIZE):
        yield file.read_at(offset, min(PIECE_SIZE, size_bytes - offset))
