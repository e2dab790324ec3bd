"""The directories of a queue on local files: made or checked by a start, then locked. Blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.disk.interface import IDisk, ILock
from mailismus.errors import StartError
from mailismus.queue.files.conversion import refuse_between

LOCK = "lock"
"""The file in each root whose lock a server holds."""


def make_directories(disk: IDisk, root: str, names: Sequence[str]) -> None:
    """Make a root and the directories of these names in it where they are missing; refuse unsafe ones. The names are durable
    afterwards. Raises `StartError`, `OSError`."""
    _ensure(disk, root)
    for name in names:
        path = os.path.join(root, name)
        if not disk.exists(path):
            disk.make_directory(path)
        check_safe(disk, path)
    disk.sync_directory(root)  # always: the start that made them may have been killed before its sync


def check_safe(disk: IDisk, path: str) -> None:
    """Refuse a directory that is another user's, or open to others. Raises `StartError` (77), `OSError`."""
    reason = disk.refuse_unsafe(path)
    if reason is not None:
        raise StartError(os.EX_NOPERM, reason)


def lock_roots(disk: IDisk, roots: Sequence[str]) -> list[ILock]:
    """Lock all of these directories, that of the queue first, or none. Raises `StartError` (75) when another process holds
    one, or a conversion of the queue was stopped while directories changed places; `OSError`."""
    locks: list[ILock] = []
    try:
        for root in roots:
            lock = disk.lock(os.path.join(root, LOCK))
            if lock is None:
                what = (
                    f"another server holds {root}, or a command: stop it, or wait, or give this one directories of its own"
                )
                raise StartError(os.EX_TEMPFAIL, what)
            locks.append(lock)
        refuse_between(disk, roots[0])
    except BaseException:
        for held in locks:
            held.release()
        raise
    return locks


def _ensure(disk: IDisk, path: str) -> None:
    """Make a directory with its parents, or check it. Its name is durable afterwards."""
    parent = os.path.dirname(path)
    is_new = not disk.exists(path)
    if is_new:
        if not disk.exists(parent):
            _ensure(disk, parent)
        try:
            disk.make_directory(path)
        except FileExistsError:
            pass  # another process made it meanwhile: nobody holds the lock yet
    check_safe(disk, path)
    try:
        disk.sync_directory(parent)
    except OSError:
        if is_new:  # else an administrator made it, perhaps below a directory that we may not sync
            raise
