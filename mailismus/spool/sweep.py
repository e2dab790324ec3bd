"""The sweep: message files that no message of the queue needs, left by a crash between a draft and its commit.

A name is a stray only if its spool id is of an earlier start than this one (no draft of ours can own it) and the queue
does not know it, or not the recipient whose name it is. One silo at a time, beside reception; everything here blocks.

A stray may be what belongs to a line that did not check. So while something is set aside, strays are set aside beside it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from mailismus.disk.interface import IDisk, close_read
from mailismus.mail.ids import SpoolId
from mailismus.spool.silo import SILO_NAMES, parse_message_name

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""What a file system says that makes no hard link here."""


def sweep_silo(
    disk: IDisk, root: str, silo: int, before: SpoolId, is_needed: Callable[[SpoolId, int], bool], aside: str = ""
) -> int:
    """Unlink the strays of one silo, those of spool ids below `before`; gives their number. `is_needed` is asked with the
    spool id and the number of the recipient whose name it is (0: all share it). `aside`: the directory that they are
    moved to instead. Names that are none of ours are left alone. Raises OSError."""
    path = os.path.join(root, SILO_NAMES[silo])
    count = 0
    for name in disk.list_directory(path):
        found = parse_message_name(name)
        if found is not None and found[0] < before and not is_needed(*found):
            if aside:
                set_aside(disk, os.path.join(path, name), aside)
            disk.unlink(os.path.join(path, name))
            count += 1
    return count


PIECE = 1 << 20
"""Bytes copied at once."""


def set_aside(disk: IDisk, path: str, directory: str) -> bool:
    """Another name for a file in this directory, or a copy where that is another file system; False: it has been there.
    Durable afterwards. Raises OSError."""
    new_path = os.path.join(directory, os.path.basename(path))
    if disk.exists(new_path):
        return False
    try:
        disk.link(path, new_path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _copy(disk, path, new_path)
    disk.sync_directory(directory)
    return True


def _copy(disk: IDisk, path: str, new_path: str) -> None:
    source = disk.open(path)
    try:
        target = disk.create(new_path)
        try:
            offset = 0
            while piece := source.read_at(offset, PIECE):
                target.write_at(offset, [piece])
                offset += len(piece)
            target.sync()
        finally:
            target.close()
    finally:
        close_read(source)
