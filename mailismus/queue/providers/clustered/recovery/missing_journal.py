"""Missing journal: no segment was ever begun, or all are gone.

That is right at the first start of a queue. Where there is mail in clusters or silos, the journal was removed, or its file
system is not mounted: a start would remove this mail as leftovers of a crash.

*Not here*: a journal that is damaged, but not gone (`salvage`).
"""

from __future__ import annotations

import os

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.errors import StartError
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue
from mailismus.spool.silo import SILO_NAMES, parse_message_name


def refuse_lost_journal(loaded: ReplayedQueue, disk: IDisk, settings: QueueSettings) -> None:
    """Raise `StartError`, having changed nothing, where there is mail and no journal. Searches for mail only where no
    segment holds a batch."""
    if loaded.journal.used or loaded.is_doubtful:
        return
    found = _some_mail(disk, settings)
    if found is not None:
        journal = os.path.join(settings.rootpath, "journal")
        text = (
            f"the journal is gone: {journal} holds none, but there is mail, such as {found}; "
            "bring the journal back, or run mailismus fsck --repair, which keeps what can be kept"
        )
        raise StartError(os.EX_DATAERR, text)


def _some_mail(disk: IDisk, settings: QueueSettings) -> str | None:
    for cluster_id in find_clusters(disk, settings.rootpath):
        return cluster_id.path(settings.rootpath)
    for silo in SILO_NAMES:
        directory = os.path.join(settings.spool.rootpath, silo)
        for name in sorted(disk.list_directory(directory)):
            if parse_message_name(name) is not None:
                return os.path.join(directory, name)
    return None
