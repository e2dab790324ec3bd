"""Locks of a stopped queue: a check takes those that are there, a repair all. Blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.disk.interface import IDisk, ILock, NameKind
from mailismus.errors import StartError
from mailismus.queue.files.directories import LOCK


def lock_file_of(disk: IDisk, root: str) -> str | None:
    """Return the path of the lock of this directory; None: there is no such file, so no server has ever run here. Raises
    `OSError`."""
    path = os.path.join(root, LOCK)
    if not disk.exists(path) or disk.describe(path).kind is not NameKind.FILE:
        return None
    return path


def held_error(root: str) -> StartError:
    """The error where another process holds the lock of this directory."""
    text = f"a server or another fsck holds {root}: stop it first, or use `mailismus queue` to look at a running server"
    return StartError(os.EX_TEMPFAIL, text)


class RepairLocks:
    """The locks of the directories of a queue under repair."""

    def __init__(self, disk: IDisk, roots: Sequence[str]) -> None:
        self._disk = disk
        self._roots = roots
        self._locks: dict[str, ILock] = {}

    def take(self) -> None:
        """Take the locks that are not held yet. One that is no file is left out: its repair moves it away. Raises
        `StartError` (75), `OSError`."""
        for root in self._roots:
            path = os.path.join(root, LOCK)
            if root in self._locks or (self._disk.exists(path) and self._disk.describe(path).kind is not NameKind.FILE):
                continue
            lock = self._disk.lock(path)
            if lock is None:
                raise held_error(root)
            self._locks[root] = lock

    def held(self) -> list[ILock]:
        """All of them, in the order of the directories."""
        return [self._locks[root] for root in self._roots]

    def release(self) -> None:
        """Give up those that are held."""
        for lock in self._locks.values():
            lock.release()
