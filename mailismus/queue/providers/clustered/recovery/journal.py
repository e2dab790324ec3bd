"""The journal of a queue that is being opened: replayed, judged, marked as ours, and begun anew. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.presence import Presence
from mailismus.journal.opening import JournalOpener, OpenJournal, Reuse
from mailismus.queue.files.journal_damage import quarantine_damage
from mailismus.queue.files.missing_journal import refuse_lost_journal
from mailismus.queue.providers.clustered.format.record import FORMAT_WITH_WORDS
from mailismus.queue.providers.clustered.format.version import OWNERSHIP
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, load
from mailismus.spool.listing import find_message_files


@attrs.frozen
class BegunJournal:
    """A journal that a start goes on with. `set_aside`: batches and records that did not check."""

    loaded: ReplayedQueue
    journal: OpenJournal
    set_aside: int

    def close(self) -> None:
        """Close every segment after a start that failed."""
        self.loaded.journal.close()
        self.journal.close()


def open_journal(settings: QueueSettings, opener: JournalOpener, presence: Presence, newest_cluster: int) -> BegunJournal:
    """Replay the journal, and go on with it. `newest_cluster`: the highest format of a cluster. Raises `StartError`,
    `OSError`."""
    disk = opener.disk
    loaded = load(disk, opener.directory)
    if newest_cluster >= FORMAT_WITH_WORDS:
        loaded.note_words()
    try:
        refuse_lost_journal(loaded, opener.directory, _mail(disk, settings))
        OWNERSHIP.mark(disk, settings.rootpath, is_known=bool(loaded.journal.used))
        set_aside = quarantine_damage(loaded, disk, os.path.join(settings.rootpath, "corrupt"))
    except BaseException:
        loaded.journal.close()
        raise
    journal = opener.begin_journal(loaded, loaded, Reuse.WHAT_IS_FREE, presence=presence)
    return BegunJournal(loaded, journal, set_aside)


def _mail(disk: IDisk, settings: QueueSettings) -> Iterator[str]:
    """Paths of files with mail, found as they are asked for."""
    for cluster_id in find_clusters(disk, settings.rootpath):
        yield cluster_id.path(settings.rootpath)
    yield from find_message_files(disk, settings.spool.rootpath)
