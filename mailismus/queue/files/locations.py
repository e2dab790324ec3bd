"""Locations: the directories and locks of an open queue, to be known again whatever becomes of their names.

Queue and spool are known by their locks, and the journal's directory is kept open: no other can pass for them. Of areas and
silos nothing is kept but the path: a new file is made in whatever directory has that name, and is found there.
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

QUEUE_DIRECTORIES = ("journal", "incoming", "deferred", "bounces", "corrupt", "state")
"""What lies in the queue's directory, beside its lock."""


@attrs.frozen
class Locations:
    """Of one open queue."""

    journal: Presence
    """What the journal's files are found by."""
    everything: Presence
    _locks: Sequence[ILock]
    _directory: IDirectory

    def release(self) -> None:
        """Give up the locks and the descriptor."""
        for lock in self._locks:
            lock.release()
        self._directory.close()


def remember(settings: QueueSettings, disk: IDisk, locks: Sequence[ILock]) -> Locations:
    """Of a queue whose directories are there; `locks`: of queue and spool. Raises OSError."""
    roots = (settings.rootpath, settings.spool.rootpath)
    journal = os.path.join(roots[0], "journal")
    held = {os.path.join(root, LOCK): lock for root, lock in zip(roots, locks, strict=True)}
    queue, spool = (AnyDirectory(disk, lock) for lock in locks)
    kept = disk.open_directory(journal)
    found_by: dict[str, INamed] = {roots[0]: queue, journal: kept}
    silos = [os.path.join(roots[1], name) for name in SILO_NAMES]
    areas = [os.path.join(roots[0], name) for name in QUEUE_DIRECTORIES if name != "journal"]
    everything = Presence({**found_by, roots[1]: spool, **dict.fromkeys((*areas, *silos), AnyDirectory(disk))}, held)
    try:
        everything.check()
    except BaseException:
        kept.close()
        raise
    return Locations(Presence(found_by, dict(list(held.items())[:1])), everything, locks, kept)
