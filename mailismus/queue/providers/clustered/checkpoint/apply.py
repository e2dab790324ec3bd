"""Apply: entries of a durable checkpoint move from the memtable to the cluster index, slice by slice, so that mail goes on.

A slice is some lines of one cluster, in their order: the cluster's committed length grows over them in the index, and their
entries leave the memtable. So each entry is in one of the two at any time. An entry that is not applied yet is settled as
while the checkpoint's record waited for its barrier: the settlement names the place of the line.

*Rules*: the journal before the horizon stays until all is applied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from mailismus.mail.ids import EntryKey, QueueId
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint

SLICE = 1000
"""Entries of a slice at most: a few milliseconds."""

PAUSE_S = 0.001
"""Seconds between two slices, for other work."""


class EntryMover(Protocol):
    """Owns the entries of the memtable and moves them."""

    @property
    def asked(self) -> Collection[EntryKey]:
        """Entries whose settlement has gone into the journal and is not durable yet."""

    def move_entries(self, pending: PendingCheckpoint, queue_ids: Sequence[QueueId]) -> None:
        """The checkpoint is durable: move these of its entries to the cluster index."""

    def abandon_moves(self, pending: PendingCheckpoint) -> None:
        """The checkpoint was abandoned; the indexes are unchanged."""


class CheckpointApply:
    """Applies one checkpoint. Its clusters are in the index at once, with the lengths that they had before it."""

    def __init__(self, pending: PendingCheckpoint, cluster_index: ClusterIndex, mover: EntryMover, queue_path: str) -> None:
        self._pending = pending
        self._cluster_index = cluster_index
        self._mover = mover
        for cluster_id in pending.grown:
            if cluster_id not in cluster_index.clusters:
                cluster = Cluster(cluster_id, cluster_id.path(queue_path), 0)
                cluster.count_live(0)
                cluster_index.add(cluster, None)
        self._slices = deque(self._cut(SLICE))

    def _cut(self, most: int) -> Iterator[tuple[ClusterId, list[QueueId], int]]:
        """Yield slices, and the length that each brings its cluster to."""
        pending = self._pending
        for cluster_id, lines in pending.lines.items():
            for start in range(0, len(lines), most):
                end = start + most
                length = pending.places[lines[end]].offset if end < len(lines) else pending.grown[cluster_id]
                yield cluster_id, lines[start:end], length

    def step(self) -> bool:
        """Apply one slice; return whether another is left."""
        if self._slices:
            cluster_id, queue_ids, length = self._slices.popleft()
            cluster = self._cluster_index.clusters[cluster_id]
            cluster.grow(length, len(queue_ids))
            self._mover.move_entries(self._pending, queue_ids)
        return bool(self._slices)
