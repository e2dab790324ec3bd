"""Cleanup: changes that a checkpoint makes to files of earlier ones. A change that fails does not fail the checkpoint.

State bytes of finished lines are set; clusters without a live line, and files of abandoned checkpoints, are unlinked; open
clusters are cut to their committed length; a cluster whose sync failed is rewritten.

*Rules*: each checkpoint repeats in the journal what could not be done, until it is done: owed marks as places, a committed
length as a length, a dead file as length 0. Otherwise the next start, behind that checkpoint's horizon, would take the file
as it is.

*Not here*: new lines and contents (`write`): without those there is no checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import attrs
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.providers.clustered.checkpoint.write import CheckpointWriter
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint

NOBODY = QueueId(SpoolId(0), 1)
"""Stands in the journal before the place of a finished line whose entry is not known any more."""


@attrs.define
class Kept:
    """Changes that one checkpoint made to files of earlier ones, and those that failed."""

    gone: dict[ClusterId, Cluster] = attrs.field(factory=dict)
    """Clusters without a live line that are unlinked."""
    marked: dict[Cluster, frozenset[int]] = attrs.field(factory=dict)
    owed: dict[Cluster, frozenset[int]] = attrs.field(factory=dict)
    """Lines that could not be marked."""
    cut: set[ClusterId] = attrs.field(factory=set)
    swept: set[ClusterId] = attrs.field(factory=set)
    """Dead files that are unlinked."""

    def places(self) -> Iterator[tuple[QueueId, Place]]:
        """Yield the places of finished lines that could not be marked."""
        for cluster, offsets in self.owed.items():
            for offset in sorted(offsets):
                yield NOBODY, Place(cluster.id, offset)


class ClusterCleanup:
    """Changes that are due. `committed` and `abandoned` say how the checkpoint ended that made some of them."""

    _log = Logger()

    def __init__(self, write: CheckpointWriter, worker: IWorker, cluster_index: ClusterIndex, queue_path: str) -> None:
        self._write = write
        self._worker = worker
        self._cluster_index = cluster_index
        self._queue_path = queue_path
        self._uncut = {c.id: c.length for c in cluster_index.clusters.values() if c.length is not None}
        """Clusters with bytes behind their committed length, written by an abandoned checkpoint."""
        self._dead = {cluster_id for cluster_id, length in self._uncut.items() if not length}
        """Files of abandoned checkpoints."""
        for cluster_id in self._dead:
            del self._uncut[cluster_id], cluster_index.clusters[cluster_id]
        self._distrusted: set[ClusterId] = set()
        """Clusters whose sync failed."""
        self._told: set[str] = set()
        """Files of which the log said that they can't be changed."""

    async def run(self, pending: PendingCheckpoint, owed: dict[Cluster, frozenset[int]]) -> Kept:
        """Make the changes that are due, as far as possible. `owed`: the lines to be marked."""
        kept = Kept()
        for cluster_id in sorted(self._dead, key=str):
            if await self._try(cluster_id, partial(self._write.unlink, pending, cluster_id.path(self._queue_path))):
                kept.swept.add(cluster_id)
        for cluster in list(self._cluster_index.clusters.values()):
            if (
                cluster.is_empty
                and cluster.id not in pending.grown
                and await self._try(cluster.id, partial(self._write.unlink, pending, cluster.path))
            ):
                kept.gone[cluster.id] = cluster
                kept.cut.add(cluster.id)
        for cluster_id in self._distrusted - kept.gone.keys() - pending.grown.keys():
            found = self._cluster_index.clusters.get(cluster_id)
            if found is not None:
                offsets = owed.get(found, frozenset())
                length = self._uncut.get(cluster_id)
                rewrite = partial(self._write.rewrite, pending, found.path, length, sorted(offsets))
                if await self._try(cluster_id, rewrite):
                    kept.marked[found] = offsets
                    kept.cut.add(cluster_id)
        for cluster_id, length in self._uncut.items():
            cut = partial(self._write.cut, pending, cluster_id.path(self._queue_path), length)
            if cluster_id not in kept.cut and self._is_trusted(cluster_id) and await self._try(cluster_id, cut):
                kept.cut.add(cluster_id)
        for cluster, offsets in owed.items():
            if cluster.id in kept.gone or cluster in kept.marked:
                continue
            mark = partial(self._write.mark, pending, cluster.path, sorted(offsets))
            done = kept.marked if self._is_trusted(cluster.id) and await self._try(cluster.id, mark) else kept.owed
            done[cluster] = offsets
        return kept

    def _is_trusted(self, cluster_id: ClusterId) -> bool:
        return cluster_id not in self._distrusted

    async def _try(self, cluster_id: ClusterId, act: Callable[[], None]) -> bool:
        """Return whether it succeeded."""
        path = cluster_id.path(self._queue_path)
        try:
            await self._worker.run(act)
        except OSError as error:
            if path not in self._told:
                self._told.add(path)
                self._log.warn(
                    "Cluster {path} can't be changed, the journal remembers what is owed: {error}", path=path, error=error
                )
            return False
        self._told.discard(path)
        return True

    def lengths(self, kept: Kept) -> dict[ClusterId, int]:
        """Return the lengths that a start must know of files that could not be cut or unlinked."""
        found = {cluster_id: length for cluster_id, length in self._uncut.items() if cluster_id not in kept.cut}
        return found | dict.fromkeys(self._dead - kept.swept, 0)

    def committed(self, kept: Kept) -> None:
        """The checkpoint is durable."""
        for cluster, offsets in kept.marked.items():
            cluster.mark_finished(offsets)
        for cluster_id in kept.gone:
            self._cluster_index.clusters.pop(cluster_id, None)
        for cluster_id in kept.cut:
            self._uncut.pop(cluster_id, None)
            self._distrusted.discard(cluster_id)
        self._dead -= kept.swept
        self._distrusted -= kept.gone.keys()

    def abandoned(self, pending: PendingCheckpoint) -> None:
        """The checkpoint was abandoned: its own files are dead, and what it appended to open clusters does not count."""
        for cluster_id in pending.grown:
            if cluster_id.checkpoint == pending.number:
                self._dead.add(cluster_id)
            else:
                self._uncut[cluster_id] = self._cluster_index.clusters[cluster_id].length or 0
        for cluster_id in self._cluster_index.clusters:
            if cluster_id.path(self._queue_path) in pending.suspects:
                self._distrusted.add(cluster_id)
