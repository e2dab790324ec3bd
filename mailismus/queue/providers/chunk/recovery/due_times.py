"""The file of due times: written by a server, read by the next start. Blocks.

*Rules*: it is a hint, and never synced. Whatever is wrong with the file, it tells nothing, and what it tells may be wrong:
it decides which messages a start reads first, and no more.
"""

from __future__ import annotations

import os
import zlib
from array import array

from mailismus.disk.interface import IDisk, IFile, NameKind, close_read
from mailismus.queue.files.unsynced import replace_unsynced
from mailismus.queue.providers.chunk.format.due_times import (
    ITEM_BYTES,
    LONGEST_HEADER,
    format_due_times,
    parse_due_header,
)
from mailismus.queue.providers.chunk.format.version import DUE_FILE, NEW_DUE_FILE

_ITEMS = 8192
"""Of one read."""
_MOST = 100_000_000
"""Messages; a file that tells of more is none of ours."""


def write_due_times(disk: IDisk, root: str, numbers: array[int], times: array[float]) -> None:
    """Replace the file. Raises OSError, as `replace_unsynced`."""
    paths = os.path.join(root, DUE_FILE), os.path.join(root, NEW_DUE_FILE)
    replace_unsynced(disk, *paths, format_due_times(numbers, times))


def read_later(disk: IDisk, root: str, split: int, after: float) -> list[array[int]] | None:
    """For each part the numbers that are due after this time, in no order; None: nothing is told. Never raises OSError."""
    path = os.path.join(root, DUE_FILE)
    try:
        if disk.describe(path).kind is not NameKind.FILE:
            return None
        file = disk.open(path)
        try:
            return _read(file, split, after)
        finally:
            close_read(file)
    except OSError:
        return None


def _read(file: IFile, split: int, after: float) -> list[array[int]] | None:
    header = parse_due_header(file.read_at(0, LONGEST_HEADER))
    if header is None or header.messages > _MOST or file.size() != header.size_bytes + 2 * ITEM_BYTES * header.messages:
        return None
    times_at = header.size_bytes + ITEM_BYTES * header.messages
    if _crc(file, header.size_bytes, file.size()) != header.crc:
        return None
    later = [array("Q") for _ in range(split)]
    for first in range(0, header.messages, _ITEMS):
        size = ITEM_BYTES * min(_ITEMS, header.messages - first)
        numbers, times = array("Q"), array("d")
        numbers.frombytes(file.read_at(header.size_bytes + ITEM_BYTES * first, size))
        times.frombytes(file.read_at(times_at + ITEM_BYTES * first, size))
        for number, due_at in zip(numbers, times, strict=True):
            if due_at > after:
                later[number % split].append(number)
    return later


def _crc(file: IFile, begin: int, end: int) -> int:
    crc = 0
    for at in range(begin, end, ITEM_BYTES * _ITEMS):
        crc = zlib.crc32(file.read_at(at, min(ITEM_BYTES * _ITEMS, end - at)), crc)
    return crc
