"""Hastening: shortens the waiting times of entries (`IQueue.hasten`), also of those that a checkpoint is moving.

Lines of the checkpoint under way carry the times that the entries had when it began. So its entries are left alone until it
has ended. Then the lines that it appended are limited, and the entries that it did not move are changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Entry, Latest
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.control.waiters import ReadyWaiters
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint, QueueState


class Hastening:
    """Shortens the waiting times of one queue."""

    def __init__(self, state: QueueState, checkpoints: CheckpointRunner, waiters: ReadyWaiters) -> None:
        self._state, self._checkpoints, self._waiters = state, checkpoints, waiters

    def hasten(self, latest: Latest, now: float) -> None:
        """As `IQueue.hasten`."""
        memtable, cluster_index = self._state.memtable, self._state.cluster_index
        moving: Mapping[QueueId, Entry] = {}
        pending = self._state.pending
        if pending is not None and not self._checkpoints.is_broken:
            moving = pending.entries
            lengths = {cluster.id: cluster.length or 0 for cluster in cluster_index.clusters.values()}
            self._checkpoints.run().addCallback(lambda _: self._hasten_moved(pending, lengths, latest, now))
        for area in memtable.hasten(latest, now, moving) | cluster_index.hasten(latest):
            self._waiters.fire(area)

    def _hasten_moved(
        self, pending: PendingCheckpoint, lengths: Mapping[ClusterId, int], latest: Latest, now: float
    ) -> None:
        """Hasten the entries of a checkpoint that has ended. `lengths`: of the clusters before it."""
        cluster_index = self._state.cluster_index
        for cluster_id in pending.grown:
            cluster = cluster_index.clusters.get(cluster_id)
            if cluster is not None and cluster.length:
                cluster_index.limit(cluster, lengths.get(cluster_id, 0), latest)
                self._waiters.fire(cluster_id.area)
        for area in self._state.memtable.hasten(latest, now, pending.entries, is_moved=True):
            self._waiters.fire(area)
