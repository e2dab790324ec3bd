"""Taking over: what a durable checkpoint moved rests from now on, slice by slice, so that mail goes on meanwhile.

A slice is some lines of one cluster, in their order: the cluster's committed length grows over them in the index, and their
entries go from the young to the resting. So each entry is in one of the two at any time. What is not taken over yet is
settled as while the checkpoint's record waited for its barrier: the settle names the place of the line.

*Rules*: the journal before the horizon stays until all is taken over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from mailismus.mail.ids import QueueId
from mailismus.queue.providers.clustered.checkpoint.write import PendingCheckpoint
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.cluster_index import Cluster, ClusterIndex

SLICE = 1000
"""Entries of a slice at most: a few milliseconds."""

PAUSE_S = 0.001
"""Seconds between two slices, for all else."""


class EntryMover(Protocol):
    """Who owns the young entries and learns where they went."""

    @property
    def asked(self) -> Collection[QueueId]:
        """Entries whose settle has gone into the journal and is not durable yet."""

    def move_entries(self, moving: PendingCheckpoint, queue_ids: Sequence[QueueId]) -> None:
        """The checkpoint is durable: these of what was moved rest from now on."""

    def abandon_moves(self, moving: PendingCheckpoint) -> None:
        """It came to nothing: all is as it was."""


class CheckpointApply:
    """Of one checkpoint. Its clusters are in the index at once, as long as they were before it."""

    def __init__(self, moving: PendingCheckpoint, resting: ClusterIndex, mover: EntryMover, queue_path: str) -> None:
        self._moving = moving
        self._resting = resting
        self._mover = mover
        for cluster_id in moving.grown:
            if cluster_id not in resting.clusters:
                cluster = Cluster(cluster_id, cluster_id.path(queue_path), 0)
                cluster.live = 0
                resting.add(cluster, None)
        self._slices = deque(self._cut(SLICE))

    def _cut(self, most: int) -> Iterator[tuple[ClusterId, list[QueueId], int]]:
        """Slices, and the length that each brings its cluster to."""
        moving = self._moving
        for cluster_id, lines in moving.lines.items():
            for start in range(0, len(lines), most):
                end = start + most
                length = moving.places[lines[end]].offset if end < len(lines) else moving.grown[cluster_id]
                yield cluster_id, lines[start:end], length

    def step(self) -> bool:
        """One slice; whether another is left."""
        if self._slices:
            cluster_id, queue_ids, length = self._slices.popleft()
            cluster = self._resting.clusters[cluster_id]
            cluster.length = length
            cluster.live = (cluster.live or 0) + len(queue_ids)
            self._mover.move_entries(self._moving, queue_ids)
        return bool(self._slices)
