"""The plan of a count: the young, counted already, and the clusters to read, each with what of it counts.

All of it is said of the moment the plan was made: what is moved, retried or new afterwards lies in clusters that are not in
it, or behind the lengths it gives. So nothing is counted twice. A cluster that is gone meanwhile held nothing any more.

Whoever counts goes by a plan: the server itself and a look at the files alone (`listing`), and other processes, which are
told it in parts (`planned`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.version import NAME
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.counting import new_sums
from mailismus.queue.providers.clustered.read.planned_count import PlannedCluster, cluster_part, first_part, sizes_part

PART_NUMBERS = 2000
"""Names of messages, or offsets of lines that are over, in one part of a plan; less than a millisecond's work."""

PART_CLUSTERS = 25


class CountingPlan:
    """Goes through the plan once. `newest`: the number of the newest checkpoint that counts. An `ICountingPlan`."""

    provider = NAME

    def __init__(self, root: str, young: Memtable, resting: ClusterIndex, newest: int, refusing: str = "") -> None:
        """`root`: the queue's directory; `refusing`: see `Summary`."""
        self.sums = new_sums()
        """Of the young."""
        self._resting = resting
        self._clusters: Iterator[tuple[Cluster, int | None]] = iter(
            [(one, one.length) for one in resting.clusters.values() if one.id.checkpoint <= newest]
        )
        for message in young.messages.values():
            spool_id, stored_bytes = message.message.spool_id, message.message.stored_bytes
            is_lone = message.message.recipient_count == 1
            for entry in message.entries.values():
                sums = self.sums[entry.area]
                sums.entries += 1
                if is_lone:
                    sums.lone_messages += 1
                    sums.lone_bytes += stored_bytes
                else:
                    sums.sizes[spool_id] = stored_bytes
        self._parts = self._make_parts(root, refusing)

    def clusters(self) -> Iterator[PlannedCluster]:
        """The clusters that are still there and hold something. What is over is said as of the step: to be counted before
        the next."""
        for cluster, length in self._clusters:
            if self._resting.clusters.get(cluster.id) is cluster and not cluster.is_empty:
                yield PlannedCluster(cluster.id, cluster.path, length, frozenset(cluster.owed))

    def next(self) -> Mapping[str, object] | None:
        """See `ICountingPlan`; `planned_count.PlanCounter` counts by the parts."""
        return next(self._parts, None)

    def _make_parts(self, root: str, refusing: str) -> Iterator[Mapping[str, object]]:
        yield first_part(root, self.sums, refusing)
        for area in Area:
            sizes = iter(self.sums[area].sizes.items())
            while some := list(islice(sizes, PART_NUMBERS)):
                yield sizes_part(area, some)
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
