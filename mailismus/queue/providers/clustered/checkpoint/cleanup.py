"""Upkeep: what a checkpoint does to files of earlier ones. Each of these acts may fail and hold up nothing.

State bytes of lines that are over are set; clusters without a live line, and files of checkpoints that came to nothing, are
unlinked; open clusters lose what lies behind their committed length; a cluster whose sync failed is written anew.

*Rules*: what could not be done is said again in the journal, by each checkpoint until it can be done: marks that are owed as
places, a length that is committed as a length, a file that is dead as one of length 0. Otherwise the next start, behind that
checkpoint's horizon, would take the file as it is.

*Not here*: new lines and contents (`write`): without those there is no checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import attrs
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.providers.clustered.checkpoint.write import CheckpointWriter, PendingCheckpoint
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.index.cluster_index import Cluster, ClusterIndex

NOBODY = QueueId(SpoolId(0), 1)
"""Stands before the place of a line that is over in the journal, where the entry is not known any more."""


@attrs.define
class Kept:
    """What one checkpoint came to with files of earlier ones."""

    gone: dict[ClusterId, Cluster] = attrs.field(factory=dict)
    """Clusters without a live line that are unlinked."""
    marked: dict[Cluster, frozenset[int]] = attrs.field(factory=dict)
    owed: dict[Cluster, frozenset[int]] = attrs.field(factory=dict)
    """Lines that could not be marked."""
    cut: set[ClusterId] = attrs.field(factory=set)
    swept: set[ClusterId] = attrs.field(factory=set)
    """Dead files that are unlinked."""

    def places(self) -> Iterator[tuple[QueueId, Place]]:
        """Of lines that are over, and not marked."""
        for cluster, offsets in self.owed.items():
            for offset in sorted(offsets):
                yield NOBODY, Place(cluster.id, offset)


class ClusterCleanup:
    """What waits to be done. `committed` and `abandoned` tell what became of the checkpoint that did some of it."""

    _log = Logger()

    def __init__(self, write: CheckpointWriter, worker: IWorker, resting: ClusterIndex, queue_path: str) -> None:
        self._write = write
        self._worker = worker
        self._resting = resting
        self._queue_path = queue_path
        self._uncut = {c.id: c.length for c in resting.clusters.values() if c.length is not None}
        """Clusters with bytes behind their committed length: of a checkpoint that came to nothing."""
        self._dead = {cluster_id for cluster_id, length in self._uncut.items() if not length}
        """Files of checkpoints that came to nothing."""
        for cluster_id in self._dead:
            del self._uncut[cluster_id], resting.clusters[cluster_id]
        self._distrusted: set[ClusterId] = set()
        """Clusters whose sync failed."""
        self._told: set[str] = set()
        """Files of which the log says already that they can't be changed."""

    async def run(self, moving: PendingCheckpoint, owed: dict[Cluster, frozenset[int]]) -> Kept:
        """Do what can be done. `owed`: the lines to be marked."""
        kept = Kept()
        for cluster_id in sorted(self._dead, key=str):
            if await self._try(cluster_id, partial(self._write.unlink, moving, cluster_id.path(self._queue_path))):
                kept.swept.add(cluster_id)
        for cluster in list(self._resting.clusters.values()):
            if (
                cluster.is_empty
                and cluster.id not in moving.grown
                and await self._try(cluster.id, partial(self._write.unlink, moving, cluster.path))
            ):
                kept.gone[cluster.id] = cluster
                kept.cut.add(cluster.id)
        for cluster_id in self._distrusted - kept.gone.keys() - moving.grown.keys():
            found = self._resting.clusters.get(cluster_id)
            if found is not None:
                offsets = owed.get(found, frozenset())
                length = self._uncut.get(cluster_id)
                renew = partial(self._write.renew, moving, found.path, length, sorted(offsets))
                if await self._try(cluster_id, renew):
                    kept.marked[found] = offsets
                    kept.cut.add(cluster_id)
        for cluster_id, length in self._uncut.items():
            cut = partial(self._write.cut, moving, cluster_id.path(self._queue_path), length)
            if cluster_id not in kept.cut and self._is_trusted(cluster_id) and await self._try(cluster_id, cut):
                kept.cut.add(cluster_id)
        for cluster, offsets in owed.items():
            if cluster.id in kept.gone or cluster in kept.marked:
                continue
            mark = partial(self._write.mark, moving, cluster.path, sorted(offsets))
            done = kept.marked if self._is_trusted(cluster.id) and await self._try(cluster.id, mark) else kept.owed
            done[cluster] = offsets
        return kept

    def _is_trusted(self, cluster_id: ClusterId) -> bool:
        return cluster_id not in self._distrusted

    async def _try(self, cluster_id: ClusterId, act: Callable[[], None]) -> bool:
        """Whether it could be done."""
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
        """What a start has to know of files that could not be cut or unlinked."""
        found = {cluster_id: length for cluster_id, length in self._uncut.items() if cluster_id not in kept.cut}
        return found | dict.fromkeys(self._dead - kept.swept, 0)

    def committed(self, kept: Kept) -> None:
        """The checkpoint is durable."""
        for cluster, offsets in kept.marked.items():
            cluster.mark_finished(offsets)
        for cluster_id in kept.gone:
            self._resting.clusters.pop(cluster_id, None)
        for cluster_id in kept.cut:
            self._uncut.pop(cluster_id, None)
            self._distrusted.discard(cluster_id)
        self._dead -= kept.swept
        self._distrusted -= kept.gone.keys()

    def abandoned(self, moving: PendingCheckpoint) -> None:
        """It never was: its own files are dead, and what it wrote behind open clusters is nothing."""
        for cluster_id in moving.grown:
            if cluster_id.checkpoint == moving.number:
                self._dead.add(cluster_id)
            else:
                self._uncut[cluster_id] = self._resting.clusters[cluster_id].length or 0
        for cluster_id in self._resting.clusters:
            if cluster_id.path(self._queue_path) in moving.suspects:
                self._distrusted.add(cluster_id)
