"""Reading a clustered queue that no server runs on, here or copied from elsewhere; nothing is changed.

*Rules*: what can't be read is passed over and told as a gap. Where a segment of the journal can't be read, that what it says
is missing may show entries that are over, and hide others.
"""

from __future__ import annotations

import os
from functools import partial

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.journal.lenient import survey_leniently
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.read.search import QueueSearch
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.clusters import index_clusters
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_queue
from mailismus.queue.providers.clustered.recovery.replay import load_journal
from mailismus.queue.providers.clustered.recovery.salvage import salvage
from mailismus.queue.providers.clustered.recovery.stopped_contents import StoppedContents, guessed_segments
from mailismus.queue.stopped import AtOnceWorker, StoppedQueue
from mailismus.queue.throttle import WorkThrottle


def open_readonly(queue_path: str, spool_path: str, disk: IDisk | None = None) -> StoppedQueue:
    """The queue in these directories. Raises `NewerFormat`, or OSError: FileNotFoundError where there is no queue."""
    gaps = Gaps()

    def not_read(what: str, path: str, error: OSError) -> None:
        gaps.add((gap_of(what, path, error),))

    disk = disk or PosixDisk(Access.READ_ONLY)
    journal_path = os.path.join(queue_path, "journal")
    if not disk.exists(journal_path):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    refuse_newer_queue(disk, queue_path)
    loaded = load_journal(survey_leniently(disk, journal_path, partial(not_read, "journal segment")))
    loaded.is_doubtful = loaded.is_doubtful or bool(gaps)
    young = Memtable()
    for spool_id in sorted(loaded.youngs):
        young.add(loaded.youngs[spool_id], 0.0)
    found = list(find_clusters(disk, queue_path, None, partial(not_read, "directory")))

    def not_rescued(cluster_id: ClusterId, error: OSError) -> None:
        if cluster_id.checkpoint > loaded.checkpoint:  # else it is in the index, and told of when it is looked at
            not_read("cluster", cluster_id.path(queue_path), error)

    resting = index_clusters(loaded, queue_path, found, salvage(loaded, disk, queue_path, found, not_rescued))
    newest = max([loaded.checkpoint, *(cluster_id.checkpoint for cluster_id in resting.clusters)])
    segments = {}
    for segment in (*loaded.journal.others, *loaded.journal.used):
        segment.file.close()
        if segment.header is not None:
            segments[segment.header.number] = segment.path
    looks = QueueSearch(
        *(disk, queue_path, ClusterReader(AtOnceWorker(), resting, others_remove=True), young, resting, lambda: newest),
        WorkThrottle(),
    )
    contents = StoppedContents(young, disk, spool_path, segments, guessed_segments(loaded.journal))
    return StoppedQueue(looks, contents.read, gaps)
