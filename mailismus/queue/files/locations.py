"""Locations: the directories and locks of an open queue, kept so that a renamed or replaced one is recognised.

Queue and spool are recognised by their locks, the journal's directory by its open descriptor. For areas and silos only the
path is kept: a new file is made in the directory that has that name then, and is found there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDirectory, IDisk, ILock, INamed
from mailismus.disk.presence import AnyDirectory, Presence
from mailismus.queue.files.directories import LOCK
from mailismus.spool.silo import SILO_NAMES

QUEUE_DIRECTORIES = ("journal", "incoming", "deferred", "bounces", "hold", "deleted", "corrupt", "state")
"""The directories in the queue's directory, that of the journal first. Beside them: the lock and the mark."""


@attrs.frozen
class Locations:
    """The locations of one open queue."""

    journal: Presence
    """The directories and locks by which a restart finds the journal's files."""
    everything: Presence
    _locks: Sequence[ILock]
    _directory: IDirectory

    def release(self) -> None:
        """Give up the locks and the descriptor."""
        for lock in self._locks:
            lock.release()
        self._directory.close()


def remember(
    settings: QueueSettings, disk: IDisk, locks: Sequence[ILock], directories: Sequence[str] = QUEUE_DIRECTORIES
) -> Locations:
    """The locations of a queue whose directories exist; `locks`: those of queue and spool; `directories`: names in the
    queue's directory, that of the journal first. Raises OSError."""
    roots = (settings.rootpath, settings.spool.rootpath)
    journal = os.path.join(roots[0], directories[0])
    held = {os.path.join(root, LOCK): lock for root, lock in zip(roots, locks, strict=True)}
    queue, spool = (AnyDirectory(disk, lock) for lock in locks)
    kept = disk.open_directory(journal)
    found_by: dict[str, INamed] = {roots[0]: queue, journal: kept}
    silos = [os.path.join(roots[1], name) for name in SILO_NAMES]
    areas = [os.path.join(roots[0], name) for name in directories[1:]]
    everything = Presence({**found_by, roots[1]: spool, **dict.fromkeys((*areas, *silos), AnyDirectory(disk))}, held)
    try:
        everything.check()
    except BaseException:
        kept.close()
        raise
    return Locations(Presence(found_by, dict(list(held.items())[:1])), everything, locks, kept)
