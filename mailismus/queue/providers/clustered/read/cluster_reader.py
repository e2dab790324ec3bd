"""Reading clusters beside all that goes on, and telling one that is gone from one that can't be read.

A cluster without a live line is unlinked by a checkpoint, maybe while somebody is about to read it: nothing is missing
then. In every other case the entries of a cluster that can't be read are in the queue, and whoever looks is told so.

*Rules*: the log tells of a cluster once, until it could be read again. A cluster that the index knows with live lines and
that has no file is not gone, but lost or moved away: its messages keep their bytes.

*Not here*: what the bytes mean (`cluster`, `counting`); when it is tried again (`due_scan`, `release`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.queue.gaps import gap_of
from mailismus.queue.interface import Gap
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex

T = TypeVar("T")


@attrs.frozen
class Unread:
    """A cluster that was not read. `gaps`: what is missing because of it; none where it is gone."""

    gaps: tuple[Gap, ...] = ()


class ClusterReader:
    """Reads the clusters of `resting` in `worker`."""

    _log = Logger()

    def __init__(self, worker: IWorker, resting: ClusterIndex, *, others_remove: bool = False) -> None:
        """`others_remove`: a server may be started on these files, and unlink clusters that the index knows."""
        self.resting = resting
        self.failures = 0
        """How often one could not be read."""
        self._worker = worker
        self._others_remove = others_remove
        self._told: set[ClusterId] = set()
        """Those that could not be read when they were last tried."""

    @property
    def unreadable(self) -> int:
        """Clusters that could not be read when they were last tried."""
        return len(self._told & self.resting.clusters.keys())

    async def read(self, cluster_id: ClusterId, path: str, act: Callable[[], T]) -> T | Unread:
        """What `act` makes of the file, in the worker. Where it raises OSError: nothing, and why."""
        try:
            result = await self._worker.run(act)
        except OSError as error:
            return self._not_read(cluster_id, path, error)
        if cluster_id in self._told:
            self._told.discard(cluster_id)
            self._log.info("Cluster {path} can be read again.", path=path)
        return result

    def _not_read(self, cluster_id: ClusterId, path: str, error: OSError) -> Unread:
        cluster = self.resting.clusters.get(cluster_id)
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
