"""Envelopes, files of recipients and info of one message: what does not check, and what is to be done about it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial

from mailismus.disk.interface import close_read
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.names import try_twice
from mailismus.queue.fsck.local.one_byte import find_change
from mailismus.queue.providers.chunk.format.files import format_info, parse_info, read_lines
from mailismus.queue.providers.chunk.format.version import INFO, TODO
from mailismus.queue.providers.chunk.fsck.executor import ChunkRepairExecutor
from mailismus.queue.providers.chunk.fsck.kinds import ChunkFindingKind
from mailismus.queue.providers.chunk.fsck.numbers import ChunkProblem, chunk_problem, move_all
from mailismus.queue.providers.chunk.recovery.found import FoundChunk
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

_CRC_SIZE = 9


def read_file(queue: ChunkDirectories, name: str, number: int) -> bytes:
    """All bytes of a file. Raises OSError."""

    def read() -> bytes:
        file = queue.of(name, number).open(str(number))
        try:
            return file.read_at(0, file.size())
        finally:
            close_read(file)

    return try_twice(read)


def check_lines(queue: ChunkDirectories, name: str, number: int) -> Iterator[ChunkProblem]:
    """An envelope, or a file of recipients."""
    path = queue.path_of(name, number)
    try:
        data = read_file(queue, name, number)
    except OSError as error:
        why = error.strerror or str(error)
        yield chunk_problem(ChunkFindingKind.UNREADABLE, path, None, partial(actions.move_aside, path), why=why)
        return
    read = read_lines(data)
    if name == TODO and not read.lines and not any(_right_byte(data, *bad) for bad in read.bad):
        yield chunk_problem(ChunkFindingKind.ENVELOPE_EMPTY, path, None, move_all(queue, number))
        return
    changes = {bad: _right_byte(data, *bad) for bad in read.bad}
    for (offset, size), change in changes.items():
        if change is not None:
            mend = partial(actions.put_right, path, change[0], bytes((change[1],)), offset, size)
            yield chunk_problem(ChunkFindingKind.LINE_BYTE, path, change[0], mend, at=offset)
    lost = [bad for bad, change in changes.items() if change is None]
    torn = len(data) - read.torn_bytes, read.torn_bytes
    if read.torn_bytes and name == TODO:
        lost.append(torn)
    elif read.torn_bytes:
        yield chunk_problem(ChunkFindingKind.LINE_TORN, path, torn[0], partial(_drop_bad, path), size=torn[1])
    for offset, size in lost:
        yield chunk_problem(ChunkFindingKind.LINE_DAMAGED, path, offset, partial(_drop_bad, path), size=size, at=offset)


def _drop_bad(path: str, executor: ChunkRepairExecutor) -> None:
    executor.drop_bad_lines(path)


def _right_byte(data: bytes, offset: int, size: int) -> tuple[int, int] | None:
    """Position and value of the one wrong byte of a line; None: more than one is wrong, or the line is cut."""
    body, crc = data[offset + 1 : offset + size - 1 - _CRC_SIZE], data[offset + size - 1 - _CRC_SIZE : offset + size - 1]
    try:
        wanted = int(crc[1:], 16)
    except ValueError:
        return None
    change = find_change(body, wanted) if body else None
    if change is None:
        return None
    repaired = body[: change.position] + bytes((change.value,)) + body[change.position + 1 :]
    line = b" %b %08x\n" % (repaired, zlib.crc32(repaired))
    return (offset + 1 + change.position, change.value) if read_lines(line).lines else None


def check_info(queue: ChunkDirectories, found: FoundChunk) -> Iterator[ChunkProblem]:
    """The info file of a message that has an entry left."""
    if found.known is None:
        return
    path, message = queue.path_of(INFO, found.number), found.known.message
    try:
        info = parse_info(read_file(queue, INFO, found.number))
        why = "its bytes are damaged" if info is None else ""
        if info is not None and info != (message.spool_id, message.recipient_count, message.sender):
            why = "it says another message than the recipients"
    except OSError as error:
        yield chunk_problem(ChunkFindingKind.INFO_DAMAGED, path, why=f"it can't be read ({error.strerror or error})")
        return
    if why:
        mend = partial(_write_info, path, format_info(message))
        yield chunk_problem(ChunkFindingKind.INFO_DAMAGED, path, None, mend, why=why)


def _write_info(path: str, data: bytes, executor: ChunkRepairExecutor) -> None:
    executor.write_anew(path, data)
