"""Locations: the directories and locks of an open queue, to be known again whatever becomes of their names.

Those that all else is found by are kept open, so that no other can pass for them; a silo, or an area's directory, that was
removed and made again may pass for itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from mailismus.config.settings import QueueSettings
from mailismus.disk.interface import IDirectory, IDisk, ILock, INamed
from mailismus.disk.presence import Presence, SeenDirectory
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
    _directories: Sequence[IDirectory]

    def release(self) -> None:
        """Give up the locks and the descriptors."""
        for lock in self._locks:
            lock.release()
        for directory in self._directories:
            directory.close()


def remember(settings: QueueSettings, disk: IDisk, locks: Sequence[ILock]) -> Locations:
    """Of a queue whose directories are there; `locks`: of queue and spool. Raises OSError."""
    queue, spool = settings.rootpath, settings.spool.rootpath
    journal = os.path.join(queue, "journal")
    opened: dict[str, IDirectory] = {}
    try:
        for path in (queue, journal, spool):
            opened[path] = disk.open_directory(path)
        others = [os.path.join(queue, name) for name in QUEUE_DIRECTORIES] + [
            os.path.join(spool, name) for name in SILO_NAMES
        ]
        seen: dict[str, INamed] = {path: SeenDirectory.at(disk, path) for path in others if path not in opened}
        by_path = {os.path.join(root, "lock"): lock for root, lock in zip((queue, spool), locks, strict=True)}
        found_by = Presence({path: opened[path] for path in (queue, journal)}, dict(list(by_path.items())[:1]))
        everything = Presence({**opened, **seen}, by_path)
        everything.check()
    except BaseException:
        for directory in opened.values():
            directory.close()
        raise
    return Locations(found_by, everything, locks, tuple(opened.values()))
