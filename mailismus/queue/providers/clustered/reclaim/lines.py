"""Lines of a clustered queue, read for a reference scan: those of the memtable, then each cluster in a worker.

The first scan counts the live lines of clusters too. A cluster that can't be read ends the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial

from twisted.internet.defer import Deferred

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.format.cluster import BadLine, ScannedLine, scan_lines
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_file import read_file
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.spool.reference_scan import IScanReport

_Lines = tuple[list[ScannedLine], list[BadLine]]
Quarantine = Callable[[Cluster, list[BadLine]], Coroutine[Deferred[bool], object, None]]
"""Copies the damaged lines of a cluster."""


class QueueLines:
    """`ReferenceSource` of a clustered queue."""

    def __init__(self, disk: IDisk, memtable: Memtable, reader: ClusterReader, quarantine: Quarantine) -> None:
        self._disk = disk
        self._memtable = memtable
        self._reader = reader
        self._quarantine = quarantine

    def held(self) -> set[SpoolId]:
        return set(self._memtable.messages)

    def holds(self, spool_id: SpoolId) -> bool:
        return spool_id in self._memtable.messages

    async def read_lines(self, report: IScanReport) -> bool:
        for journaled in self._memtable.messages.values():
            if journaled.is_in_silo:
                for _ in journaled.entries:
                    report.saw_line(journaled.message.spool_id, journaled.message.recipient_count)
        for cluster in list(self._reader.cluster_index.clusters.values()):
            if report.is_stopped:
                return False
            act = partial(_scan, self._disk, cluster.path, cluster.length)
            with cluster.reading() as marked:
                read = await self._reader.read(cluster.id, cluster.path, act)
            if isinstance(read, Unread):
                if not read.gaps:
                    continue  # the cluster was removed: it had no live line
                return False
            lines, bad = read
            owed = cluster.owed
            live = [
                (spool_id, number, count)
                for offset, is_done, spool_id, number, count in lines
                if not is_done and offset not in owed and offset not in marked
            ]
            report.saw_lines(live)
            if cluster.live is None:
                cluster.count_live(len(live))
            if bad:
                await self._quarantine(cluster, bad)
            for line in bad:
                report.saw_damage(line.data)
        return True


def _scan(disk: IDisk, path: str, length: int | None) -> _Lines:
    bad: list[BadLine] = []
    return list(scan_lines(read_file(disk, path, length), length, bad)), bad
