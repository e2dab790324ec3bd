"""Counting by a plan: reads the clusters that it names, in the server or in a process that gets the plan in parts.

A part is an object with some of these members:

    {"queue": DIRECTORY, "young": {AREA: [entries, messages with one recipient, bytes of those]},
     "refusing": why no mail is accepted, or empty}                                                   the first
    {"area": AREA, "sizes": [[SPOOL ID, bytes], ...]}             messages of the memtable with several recipients
    {"clusters": [[NAME, committed length or null, [offsets of finished lines]], ...]}

A cluster without a file was removed meanwhile, or is lost; a second plan tells which.

*Rules*: a part is checked like any input. Of the names in it only clusters below the queue's directory are opened, and never
through a symbolic link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Area, Summary
from mailismus.queue.providers.clustered.format.cluster import ClusterId, parse_cluster_name
from mailismus.queue.providers.clustered.read.counting import AreaSums, LiveLines, count_live, new_sums, summary_of
from mailismus.queue.providers.clustered.read.due_scan import read_file


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


def first_part(root: str, memtable: Mapping[Area, AreaSums], refusing: str) -> Mapping[str, object]:
    """Return the first part: the queue's directory, the sums of the memtable without the messages with several recipients,
    and why no mail is accepted."""
    counts = {area.value: [sums.entries, sums.lone_messages, sums.lone_bytes] for area, sums in memtable.items()}
    return {"queue": root, "young": counts, "refusing": refusing}


def sizes_part(area: Area, sizes: Iterable[tuple[SpoolId, int]]) -> Mapping[str, object]:
    """Return a part with messages of the memtable that have several recipients."""
    return {"area": area.value, "sizes": list(sizes)}


def cluster_part(clusters: Iterable[PlannedCluster]) -> Mapping[str, object]:
    """Return a part with these clusters."""
    return {"clusters": [[one.id.name, one.length, sorted(one.over)] for one in clusters]}


class PlanCounter:
    """Counts by the parts of a plan, in their order."""

    def __init__(self, disk: IDisk) -> None:
        self._disk = disk
        self._root = self._refusing = ""
        self._sums = new_sums()
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
        if "queue" in part:
            self._root = _text(part["queue"])
            self._refusing = _text(part.get("refusing", ""))
        for area_name, numbers in _object(part.get("young", {})).items():
            entries, messages, size_bytes = map(_number, _list(numbers))
            self._sums[Area(area_name)].add(LiveLines(entries, messages, size_bytes, {}))
        if "sizes" in part:
            pairs = [_list(pair) for pair in _list(part["sizes"])]
            sizes = {SpoolId(_number(spool_id)): _number(size_bytes) for spool_id, size_bytes in pairs}
            self._sums[Area(part["area"])].add(LiveLines(0, 0, 0, sizes))
        for cluster in self._clusters(part):
            try:
                self._count(cluster)
            except FileNotFoundError:
                self._missing[cluster.id] = cluster

    def _clusters(self, part: Mapping[str, object]) -> Iterator[PlannedCluster]:
        for fields in _list(part.get("clusters", [])):
            name, length, over = _list(fields)
            cluster_id = parse_cluster_name(_text(name))
            if cluster_id is None or not self._root:
                raise ValueError("no cluster's name, or nothing said where it lies")
            committed = None if length is None else _number(length)
            offsets = frozenset(map(_number, _list(over)))
            yield PlannedCluster(cluster_id, cluster_id.path(self._root), committed, offsets)

    def _count(self, cluster: PlannedCluster) -> None:
        _, found = count_cluster(self._disk, cluster)
        self._found += 1
        self._sums[cluster.id.area].add(found)

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
        if not self._root or (self._missing and not self._found):
            raise FileNotFoundError(2, "no cluster is here", self._root)
        return summary_of(self._sums, self._gaps.all(), self._refusing)


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise ValueError("no list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("no number from 0")
    return value
