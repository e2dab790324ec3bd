"""Counting by a plan: reads the clusters that it names, in the server or in a process that gets the plan in parts.

Parts beside those about entries in memory (`queue.plan_parts`):

    {"clusters": [[NAME, committed length or null, [offsets of finished lines]], ...]}

A cluster without a file was removed meanwhile, or is lost; a second plan tells which.

*Rules*: a part is checked like any input. Of the names in it only clusters below the queue's directory are opened, and never
through a symbolic link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mailismus.disk.interface import IDisk
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Summary
from mailismus.queue.plan_parts import MemorySums, list_of, number_of, text_of
from mailismus.queue.providers.clustered.format.cluster import ClusterId, parse_cluster_name
from mailismus.queue.providers.clustered.read.cluster_file import read_file
from mailismus.queue.providers.clustered.read.counting import count_live
from mailismus.queue.sums import LiveLines, summary_of


class PlannedCluster(NamedTuple):
    """A cluster to count: its committed bytes, without the finished lines at the offsets `over`."""

    id: ClusterId
    path: str
    length: int | None
    over: frozenset[int]


def count_cluster(disk: IDisk, planned: PlannedCluster) -> tuple[int, LiveLines]:
    """Return the bytes read, and the counts. Raises OSError: FileNotFoundError when the cluster was removed."""
    data = read_file(disk, planned.path, planned.length)
    return len(data), count_live(data, planned.length, planned.over)


def cluster_part(clusters: Iterable[PlannedCluster]) -> Mapping[str, object]:
    """Return a part with these clusters."""
    return {"clusters": [[one.id.name, one.length, sorted(one.over)] for one in clusters]}


class PlanCounter:
    """Counts by the parts of a plan, in their order."""

    def __init__(self, disk: IDisk) -> None:
        self._disk = disk
        self._memory = MemorySums()
        self._found = 0
        self._missing: dict[ClusterId, PlannedCluster] = {}
        """Clusters without a file; whether they were removed is not known yet."""
        self._gaps = Gaps()

    def add(self, part: Mapping[str, object]) -> None:
        """Count a part. Raises `ValueError` for one that is malformed, and OSError where a cluster exists and can't be
        read."""
        try:
            self._add(part)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no part of a plan: {error}") from None

    def _add(self, part: Mapping[str, object]) -> None:
        self._memory.add(part)
        for cluster in self._clusters(part):
            try:
                self._count(cluster)
            except FileNotFoundError:
                self._missing[cluster.id] = cluster

    def _clusters(self, part: Mapping[str, object]) -> Iterator[PlannedCluster]:
        for fields in list_of(part.get("clusters", [])):
            name, length, over = list_of(fields)
            cluster_id = parse_cluster_name(text_of(name))
            if cluster_id is None or not self._memory.root:
                raise ValueError("no cluster's name, or nothing said where it lies")
            committed = None if length is None else number_of(length)
            offsets = frozenset(map(number_of, list_of(over)))
            yield PlannedCluster(cluster_id, cluster_id.path(self._memory.root), committed, offsets)

    def _count(self, cluster: PlannedCluster) -> None:
        _, found = count_cluster(self._disk, cluster)
        self._found += 1
        self._memory.sums[cluster.id.area].add(found)

    @property
    def is_unsure(self) -> bool:
        """Whether some clusters had no file. A plan made now names those of them that were not removed; pass its parts to
        `check`."""
        return bool(self._missing and self._found)

    def check(self, part: Mapping[str, object]) -> None:
        """Check a part of such a plan. Raises as `add`."""
        try:
            for cluster in self._clusters(part):
                was_missing = self._missing.pop(cluster.id, None)
                if was_missing is not None:
                    self._count_missing(was_missing)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no part of a plan: {error}") from None

    def _count_missing(self, cluster: PlannedCluster) -> None:
        try:
            self._count(cluster)
        except FileNotFoundError as error:
            self._gaps.add((gap_of("cluster", cluster.path, error),))

    def summary(self) -> Summary:
        """Return all counts. Raises FileNotFoundError if the plan had clusters and none of them has a file here (this
        process does not see the directory), or if no part was added."""
        if not self._memory.root or (self._missing and not self._found):
            raise FileNotFoundError(2, "no cluster is here", self._memory.root)
        return summary_of(self._memory.sums, self._gaps.all(), self._memory.refusing)
