"""Setting aside: what does not check, or may belong to what does not, is kept for whoever can mend it.

*Rules*: what has its name there is whole. A copy is made under another name first: half a copy, left by a crash, would pass
for what was set aside before, and its source would go. Everything here blocks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

from mailismus.disk.interface import IDisk, close_read

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""What a file system says that makes no hard link here."""

PIECE = 1 << 20
"""Bytes copied at once."""

UNFINISHED = ".part"
"""Behind the name of a copy while it is made."""


def quarantine_file(disk: IDisk, path: str, directory: str) -> bool:
    """Another name for a file in this directory, or a copy where that is another file system; False: it has been there.
    Durable afterwards. Raises OSError."""
    new_path = os.path.join(directory, os.path.basename(path))
    if disk.exists(new_path):
        disk.sync_directory(directory)  # whoever set it aside may have been killed before this
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


def write_whole(disk: IDisk, path: str, pieces: Iterable[bytes]) -> None:
    """A file of these pieces gets this name, whole or not at all. Durable afterwards, but for the name. Raises OSError."""
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
