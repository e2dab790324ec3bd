"""Clusters that count: the index of those that a start or an offline command finds.

Clusters above the newest checkpoint are of a checkpoint that was abandoned, unless the journal has lost its record
(`salvage`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mailismus.disk.interface import IDisk
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.format.slots import slot_start
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue
from mailismus.queue.providers.clustered.recovery.salvage import salvage


def recover_clusters(loaded: ReplayedQueue, disk: IDisk, root: str) -> tuple[ClusterIndex, int]:
    """The clusters that count; files of a checkpoint that came to nothing go. That is durable with the next checkpoint,
    which takes a higher number than any file found, and cuts open ones to their committed length. Names are read, files are
    not. Gives the highest number too."""
    leftovers: list[str] = []
    found = list(find_clusters(disk, root, leftovers))
    for path in leftovers:
        disk.unlink(path)
    rescued = salvage(loaded, disk, root, found)
    for cluster_id in found:
        if cluster_id.checkpoint > loaded.checkpoint and cluster_id not in rescued:
            disk.unlink(cluster_id.path(root))
    resting = index_clusters(loaded, root, found, rescued)
    # The journal may still name places in files that an earlier start has removed: those numbers are not used again either.
    named = [place.cluster.checkpoint for place in loaded.owed]
    return resting, max([loaded.checkpoint, *named, *(cluster_id.checkpoint for cluster_id in found)])


def index_clusters(
    loaded: ReplayedQueue, root: str, found: Iterable[ClusterId], rescued: Mapping[ClusterId, Iterable[int]]
) -> ClusterIndex:
    """An index of those of the clusters found that count. `rescued`: see `salvage`."""
    resting = ClusterIndex()
    for cluster_id in found:
        if cluster_id.checkpoint <= loaded.checkpoint or cluster_id in rescued:
            start = slot_start(cluster_id.slot) if cluster_id.slot else None
            length = None if cluster_id in rescued else loaded.lengths.get(cluster_id)
            cluster = Cluster(cluster_id, cluster_id.path(root), length)
            resting.add(cluster, start or 0.0)
            for offset in rescued.get(cluster_id, ()):
                resting.owe(cluster, offset)
    for place in loaded.owed:
        owing = resting.clusters.get(place.cluster)
        if owing is not None:
            resting.owe(owing, place.offset)
    return resting
