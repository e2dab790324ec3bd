"""The lock of writers beside the server: programs that put messages into a queue by themselves.

Each of them shares it with the others while it writes. A repair, a conversion and a change of the queue's directories hold
it alone, and no writer works then. Blocks.

*Not here*: the server's own lock (`queue.files.directories`), which writers do not need.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.disk.interface import IDisk, ILock, NameStanding
from mailismus.errors import StartError

WRITERS = "writers"
"""The file in the queue's directory."""
TRIES = 20
WAIT_S = 0.1
"""A message takes a writer some milliseconds: so many tries, with so many seconds between them."""


def make_writers_lock(disk: IDisk, root: str) -> None:
    """Make the file: where it is, a conversion asks for it. Raises `OSError`."""
    if not disk.exists(os.path.join(root, WRITERS)):
        lock = disk.lock(os.path.join(root, WRITERS), is_shared=True)
        if lock is not None:
            lock.release()


def share_with_writers(disk: IDisk, root: str) -> ILock:
    """Lock the queue as one of its writers. Raises `StartError` (75) while it is held alone, `OSError`."""
    path = os.path.join(root, WRITERS)
    lock = disk.lock(path, is_shared=True)
    if lock is not None and lock.standing(path) is NameStanding.NAMED:
        return lock
    if lock is not None:
        lock.release()
    raise StartError(os.EX_TEMPFAIL, f"a repair or a conversion of the queue in {root} is under way; try again")


def lock_out_writers(disk: IDisk, root: str, wait: Callable[[float], object]) -> ILock:
    """Lock the queue alone; `wait` lets so many seconds go by. Raises `StartError` (75) while writers are at work,
    `OSError`."""
    path = os.path.join(root, WRITERS)
    for left in reversed(range(TRIES)):
        lock = disk.lock(path)
        if lock is not None:
            return lock
        if left:
            wait(WAIT_S)
    raise StartError(os.EX_TEMPFAIL, f"programs are putting messages into the queue in {root}: wait for them, or stop them")
