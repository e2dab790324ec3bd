"""Newer formats of clusters: files that a newer program wrote are found before anything is changed, and refused.

The first bytes of each cluster are read.

*Not here*: segments and message files (`queue.files.newer_formats`).
"""

from __future__ import annotations

import os

from mailismus.disk.interface import IDisk, IFile
from mailismus.queue.files.newer_formats import read_if_possible, refuse_newer_journal
from mailismus.queue.providers.clustered.format.cluster import LONGEST_HEADER, refuse_newer_cluster
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters


def refuse_newer_queue(disk: IDisk, queue_path: str) -> int:
    """Raise `NewerFormat` where a journal segment or a cluster of the queue was written by a newer program; otherwise return
    the highest format of a cluster, 0 where there is none. Files that can't be read are passed over: whoever needs one of
    them reports it."""
    refuse_newer_journal(disk, os.path.join(queue_path, "journal"))
    return refuse_newer_clusters(disk, queue_path)


def refuse_newer_clusters(disk: IDisk, queue_path: str) -> int:
    """As `refuse_newer_queue`, of clusters."""
    highest = 0
    for cluster_id in find_clusters(disk, queue_path, not_listed=lambda path, error: None):
        path = cluster_id.path(queue_path)
        highest = max(highest, refuse_newer_cluster(path, read_if_possible(disk, path, _read_header)))
    return highest


def _read_header(file: IFile) -> bytes:
    return file.read_at(0, LONGEST_HEADER)
