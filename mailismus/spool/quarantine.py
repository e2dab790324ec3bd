"""Quarantine: keep damaged files, and files that may belong to damaged records, for a later repair.

*Rules*: a file under its final name is complete. A copy is written under a temporary name first. Otherwise a partial copy,
left by a crash, would pass for a complete one, and its source would be removed. Every function blocks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

from mailismus.disk.interface import IDisk, close_read

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""Errors of file systems that can't make this hard link."""

PIECE = 1 << 20
"""Bytes copied at a time."""

UNFINISHED = ".part"
"""Suffix of a copy that is not complete."""


def quarantine_file(disk: IDisk, path: str, directory: str) -> bool:
    """Link a file into this directory, or copy it to another file system. False: the directory has a file of this name
    already. Durable afterwards. Raises OSError."""
    new_path = os.path.join(directory, os.path.basename(path))
    if disk.exists(new_path):
        disk.sync_directory(directory)  # the process that linked it may have been killed before its sync
        return False
    try:
        disk.link(path, new_path)
    except FileExistsError:
        disk.sync_directory(directory)  # another reader was faster
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        write_whole(disk, new_path, _pieces(disk, path))
    disk.sync_directory(directory)
    return True


def keep_corrupt(disk: IDisk, directory: str, name: str, note: bytes, data: bytes) -> bool:
    """Copy bytes that fail their check into a file, with a note of their origin. The first copy of a name stays: then return
    False. Durable afterwards. Raises OSError."""
    path = os.path.join(directory, name)
    is_new = not disk.exists(path)
    if is_new:
        write_whole(disk, path, [note, data])
    disk.sync_directory(directory)  # always: a process that made it may have been killed before its sync
    return is_new


def write_whole(disk: IDisk, path: str, pieces: Iterable[bytes]) -> None:
    """Write a file of these pieces under this name, atomically. Durable afterwards: the bytes, not the name. Raises
    OSError."""
    new_path = path + UNFINISHED
    if disk.exists(new_path):
        disk.unlink(new_path)
    file = disk.create(new_path)
    try:
        offset = 0
        for piece in pieces:
            file.write_at(offset, [piece])
            offset += len(piece)
        file.sync()
    finally:
        file.close()
    disk.rename(new_path, path)


def _pieces(disk: IDisk, path: str) -> Iterator[bytes]:
    source = disk.open(path)
    try:
        offset = 0
        while piece := source.read_at(offset, PIECE):
            yield piece
            offset += len(piece)
    finally:
        close_read(source)
