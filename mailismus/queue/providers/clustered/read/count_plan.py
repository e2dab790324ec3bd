"""Plan of a count: the counts of the memtable, and the clusters to read, each with its committed length and finished lines.

The plan describes the moment when it was made. Entries that are moved, retried or accepted later lie in clusters that are
not in it, or behind its lengths, so no entry is counted twice. A cluster that is removed meanwhile had no live line.

All counts use a plan: the server's own, a count of the files of a stopped queue (`stopped`), and other processes, which
get it in parts (`planned_count`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mailismus.queue.plan_parts import PART_NUMBERS, memory_parts
from mailismus.queue.providers.clustered.format.version import NAME
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.planned_count import PlannedCluster, cluster_part
from mailismus.queue.sums import new_sums

PART_CLUSTERS = 25


class CountingPlan:
    """An `ICountingPlan`, used once. `newest`: the number of the newest durable checkpoint."""

    provider = NAME

    def __init__(self, root: str, memtable: Memtable, cluster_index: ClusterIndex, newest: int, refusing: str = "") -> None:
        """`root`: the queue's directory; `refusing`: see `Summary`."""
        self.sums = new_sums()
        """Sums of the memtable."""
        self._cluster_index = cluster_index
        self._clusters: Iterator[tuple[Cluster, int | None]] = iter(
            [(one, one.length) for one in cluster_index.clusters.values() if one.id.checkpoint <= newest]
        )
        for message in memtable.messages.values():
            for entry in message.entries.values():
                self.sums[entry.area].add_entry(message.message)
        self._parts = self._make_parts(root, refusing)

    def clusters(self) -> Iterator[PlannedCluster]:
        """Yield the clusters that still exist and have live lines. The finished lines are those of this step: count a
        cluster before the next step."""
        for cluster, length in self._clusters:
            if self._cluster_index.clusters.get(cluster.id) is cluster and not cluster.is_empty:
                yield PlannedCluster(cluster.id, cluster.path, length, frozenset(cluster.owed))

    def next(self) -> Mapping[str, object] | None:
        """See `ICountingPlan`; `planned_count.PlanCounter` counts by the parts."""
        return next(self._parts, None)

    def _make_parts(self, root: str, refusing: str) -> Iterator[Mapping[str, object]]:
        yield from memory_parts(root, self.sums, refusing)
        numbers = 0
        some_clusters: list[PlannedCluster] = []
        for cluster in self.clusters():
            some_clusters.append(cluster)
            numbers += len(cluster.over)
            if len(some_clusters) == PART_CLUSTERS or numbers >= PART_NUMBERS:
                yield cluster_part(some_clusters)
                some_clusters, numbers = [], 0
        if some_clusters:
            yield cluster_part(some_clusters)
