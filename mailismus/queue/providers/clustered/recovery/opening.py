"""Opening a clustered queue: directories, locks, journal, clusters.

Blocking, before the reactor runs: whatever can refuse a start is tried here. Nothing is acted on before the start's own
barrier (`journal.opening`). A start that is stopped anywhere begins anew.
"""

from __future__ import annotations

import os

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.worker import IWorker
from mailismus.journal.opening import JournalOpener
from mailismus.journal.writer import RandomBytes
from mailismus.queue.files.directories import lock_roots
from mailismus.queue.files.locations import Locations, remember
from mailismus.queue.files.refusals import errors_refuse_start
from mailismus.queue.providers.clustered.recovery.clusters import recover_clusters
from mailismus.queue.providers.clustered.recovery.directories import prepare_directories
from mailismus.queue.providers.clustered.recovery.journal import open_journal
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_clusters
from mailismus.queue.providers.clustered.recovery.opened import Opened
from mailismus.spool.link_probe import probe_links

_log = Logger()


def open_queue(
    settings: QueueSettings, disk: IDisk, files: IWorker, reactor: IReactorTime, random_bytes: RandomBytes
) -> Opened:
    """Open it. Raises `StartError` with what an administrator must do."""
    with errors_refuse_start():
        prepare_directories(settings, disk)
        locks = lock_roots(disk, (settings.rootpath, settings.spool.rootpath))
        return open_locked(settings, disk, locks, files, reactor, random_bytes)


def open_locked(
    settings: QueueSettings,
    disk: IDisk,
    locks: list[ILock],
    files: IWorker,
    reactor: IReactorTime,
    random_bytes: RandomBytes,
) -> Opened:
    """Open a queue whose directories are made and whose locks (of queue and spool) are held; on failure they are given up.
    Raises `StartError`, `NewerFormat`, `OSError`."""
    directory = os.path.join(settings.rootpath, "journal")
    opener = JournalOpener(disk, directory, settings.journal, files, reactor, random_bytes)
    locations: Locations | None = None
    try:
        newest_cluster = refuse_newer_clusters(disk, settings.rootpath)
        locations = remember(settings, disk, locks)
        if settings.spool.hardlinks:
            probe_links(disk, settings.spool.rootpath)
        return _open(settings, opener, locations, newest_cluster)
    except BaseException:
        if locations is not None:
            locations.release()
        for lock in locks:
            lock.release()
        raise


def _open(settings: QueueSettings, opener: JournalOpener, locations: Locations, newest_cluster: int) -> Opened:
    """`newest_cluster`: the highest format of a cluster."""
    begun = open_journal(settings, opener, locations.journal, newest_cluster)
    try:
        youngs = list(begun.loaded.youngs.values())
        resting, highest = recover_clusters(begun.loaded, opener.disk, settings.rootpath)
    except BaseException:
        begun.close()
        raise
    if youngs or resting.clusters:
        _log.info(
            "Found {count} messages in the journal and {clusters} clusters.",
            count=len(youngs),
            clusters=len(resting.clusters),
        )
    journal = begun.journal
    return Opened(journal.pool, journal.writer, journal.spool_ids, youngs, resting, highest + 1, begun.set_aside, locations)
