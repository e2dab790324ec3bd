"""Held clusters: the clusters with lines that were held back, in a line for each area and sender (pure).

*Rules*: the first cluster of a line is scanned when the sender may have room again, and the next one when the first has no
more lines of the sender. So that costs a scan for each sender, however many clusters hold its lines.

A cluster that is gone is passed over.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Container, Iterator

from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.cluster import Cluster


class HeldClusters:
    """The lines of clusters. `clusters`: those that are there."""

    def __init__(self, clusters: Container[ClusterId]) -> None:
        self._clusters = clusters
        self._lines: dict[tuple[Area, bytes], OrderedDict[ClusterId, None]] = {}

    def update(self, cluster: Cluster, held: Collection[bytes], served: Collection[bytes]) -> Iterator[ClusterId]:
        """Note for which senders a scan held lines back (`held`). Yield the clusters that are next, of senders that were
        `served` and have no more lines in this one."""
        area = cluster.id.area
        for sender in held:
            if sender not in cluster.held_for:
                cluster.held_for.add(sender)
                self._lines.setdefault((area, sender), OrderedDict())[cluster.id] = None
        for sender in cluster.held_for.difference(held):
            cluster.held_for.discard(sender)
            line = self._lines.get((area, sender))
            if line is not None:
                line.pop(cluster.id, None)
                first = self._first(area, sender)
                if first is not None and sender in served:
                    yield first

    def first_of_each(self) -> Iterator[ClusterId]:
        """Yield the first cluster of each line."""
        for area, sender in list(self._lines):
            first = self._first(area, sender)
            if first is not None:
                yield first

    def _first(self, area: Area, sender: bytes) -> ClusterId | None:
        line = self._lines[area, sender]
        while line:
            first = next(iter(line))
            if first in self._clusters:
                return first
            del line[first]
        del self._lines[area, sender]
        return None
