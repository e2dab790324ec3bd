"""Cluster reader: reads clusters while the server works, and tells a removed cluster from one that can't be read.

A checkpoint removes a cluster without live lines, perhaps just before it is read: then no entry is missing. In every other
case the entries of a cluster that can't be read are in the queue, and the reader's caller is told of the gap.

*Rules*: a cluster is logged once, until it could be read again. A cluster with live lines in the index and without a file is
lost or moved away: its messages keep their bytes.

*Not here*: the meaning of the bytes (`format.cluster`, `counting`); the time of the next attempt (`due_scan`, `release`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.queue.gaps import gap_of
from mailismus.queue.interface import Gap
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex

T = TypeVar("T")


@attrs.frozen
class Unread:
    """A cluster that was not read. `gaps`: the missing entries; empty: the cluster was removed, and none is missing."""

    gaps: tuple[Gap, ...] = ()


class ClusterReader:
    """Reads the clusters of an index in `worker`."""

    _log = Logger()

    def __init__(self, worker: IWorker, cluster_index: ClusterIndex, *, others_remove: bool = False) -> None:
        """`others_remove`: a server may be started on these files, and remove clusters that the index knows."""
        self.cluster_index = cluster_index
        self.failures = 0
        """Number of reads that failed."""
        self._worker = worker
        self._others_remove = others_remove
        self._told: set[ClusterId] = set()
        """Clusters whose last read failed."""

    @property
    def unreadable(self) -> int:
        """Number of clusters whose last read failed."""
        return len(self._told & self.cluster_index.clusters.keys())

    async def read(self, cluster_id: ClusterId, path: str, act: Callable[[], T]) -> T | Unread:
        """Return the result of `act`, which reads the file, in the worker. Where it raises OSError: `Unread`."""
        return self._known(cluster_id, path, await self._worker.run(lambda: _result_of(act)))

    async def read_each(self, clusters: Sequence[Cluster], acts: Sequence[Callable[[], T]]) -> list[T | Unread]:
        """As `read` for each of these clusters with its act, in one turn of the worker."""
        read = await self._worker.run(lambda: [_result_of(act) for act in acts])
        return [self._known(one.id, one.path, result) for one, result in zip(clusters, read, strict=True)]

    def _known(self, cluster_id: ClusterId, path: str, result: T | OSError) -> T | Unread:
        """Note whether a cluster could be read."""
        if isinstance(result, OSError):
            return self._not_read(cluster_id, path, result)
        if cluster_id in self._told:
            self._told.discard(cluster_id)
            self._log.info("Cluster {path} can be read again.", path=path)
        return result

    def _not_read(self, cluster_id: ClusterId, path: str, error: OSError) -> Unread:
        cluster = self.cluster_index.clusters.get(cluster_id)
        is_removed = self._others_remove and isinstance(error, FileNotFoundError)
        if cluster is None or cluster.is_empty or is_removed:
            self._told.discard(cluster_id)
            return Unread()
        self.failures += 1
        gap = gap_of("cluster", path, error)
        if cluster_id not in self._told:
            self._told.add(cluster_id)
            text = "Cluster {path} can't be read: {reason}; its entries wait, and it is tried again."
            self._log.error(text, path=path, reason=gap.reason)
        return Unread((gap,))


def _result_of(act: Callable[[], T]) -> T | OSError:
    """Return what an act returns, or the error that it raises."""
    try:
        return act()
    except OSError as error:
        return error
