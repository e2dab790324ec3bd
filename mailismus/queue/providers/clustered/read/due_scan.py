"""Due scan: reads the lines of clusters from disk, one cluster at a time, and hands out the due ones.

Bytes that fail their check are copied into `queue/corrupt/` and logged, and the other lines are used. A cluster that can't
be read is tried again later, and the others are used (`cluster_reader`).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Coroutine
from contextlib import closing
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Area, Entry, Filter, Flushed, Message, Shares
from mailismus.queue.providers.clustered.format.cluster import BadLine, FoundLine, read_lines
from mailismus.queue.providers.clustered.index.cluster import Cluster, Flush
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_file import read_file, read_live
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.spool.quarantine import keep_corrupt

UNREADABLE_S = 60.0
"""Seconds until a cluster that can't be read is tried again."""

_Lines = tuple[list[FoundLine], list[BadLine]]


def is_wanted(wanted: Filter, message: Message, entry: Entry) -> bool:
    """Whether an entry matches the filter; its area is not compared."""
    return wanted.spool_id in (None, message.spool_id) and wanted.matches(message, entry)


class DueScan:
    """Takes entries from clusters and memtable. One due scan of an area at a time."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        queue_path: str,
        worker: IWorker,
        reader: ClusterReader,
        memtable: Memtable,
        index: ClusterIndex,
    ) -> None:
        self._disk = disk
        self._corrupt_path = os.path.join(queue_path, "corrupt")
        self._worker = worker
        self._reader = reader
        self._index = index
        self._memtable = memtable
        self._locks = {area: DeferredLock() for area in Area}
        self._quarantine_lock = DeferredLock()
        """Held while a line is copied: the reference scan and a due scan may find the same line at the same time, and two
        writers of one copy would remove it from each other."""
        self.bad_lines = 0
        """Lines that failed their check."""

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        """As `IQueue.take`; never fails."""
        if limit <= 0 or not self._index.is_due(area, now):
            return succeed(self._memtable.take(area, limit, now, shares))
        return Deferred.fromCoroutine(self._take_both(area, limit, now, shares))

    async def _take_both(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        """Take from clusters and memtable, half from each while both have entries: neither starves the other."""
        share = max(1, limit // 2) if self._memtable.has_ready(area) else limit
        taken = await self._take_from_clusters(area, share, now, shares)
        left = limit - sum(len(message.entries) for message in taken)
        journaled = self._memtable.take(area, left, now, shares)
        left -= sum(len(message.entries) for message in journaled)
        taken += journaled
        if left > 0 and share < limit:
            taken += await self._take_from_clusters(area, left, now, shares)
        return taken

    def _take_from_clusters(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        """Take from clusters, after other due scans of the area."""
        return self._locks[area].run(lambda: Deferred.fromCoroutine(self._take(area, limit, now, shares)))

    async def _take(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        taken: list[Message] = []
        with closing(self._index.due(area, now)) as due:
            for cluster, since in due:
                if cluster.unread_at is not None and cluster.unread_at <= now:
                    await self._read(cluster, now)
                found = self._index.hand_out(cluster, since, now, limit, shares)
                taken += found
                limit -= sum(len(message.entries) for message in found)
                if limit <= 0:
                    break
        return taken

    async def flush(self, wanted: Filter, now: float) -> Flushed:
        """Make matching deferred entries due now. Clusters that can't be read are passed over."""
        count, gaps = 0, Gaps()
        if wanted.area not in (None, Area.DEFERRED):
            return Flushed(0)
        for journaled in list(self._memtable.messages.values()):
            if wanted.spool_id not in (None, journaled.message.spool_id):
                continue
            for entry in list(journaled.entries.values()):
                if entry.area is Area.DEFERRED and wanted.matches(journaled.message, entry):
                    self._memtable.make_due(journaled, entry, now)
                    count += 1
        for cluster in list(self._index.clusters.values()):
            if cluster.id.area is Area.DEFERRED:
                found = await self._count_matching(cluster, wanted)
                if isinstance(found, Unread):
                    gaps.add(found.gaps)
                elif found and self._index.clusters.get(cluster.id) is cluster:
                    count += found
                    cluster.flush(partial(is_wanted, wanted))
                    self._index.schedule_read(cluster, now)
        return Flushed(count, gaps.all())

    async def _count_matching(self, cluster: Cluster, wanted: Filter) -> int | Unread:
        """Count the live lines of a cluster that match."""
        act = partial(read_live, self._disk, cluster.path, cluster.id.area, cluster.length, wanted.spool_id)
        with cluster.reading() as marked:
            lines = await self._reader.read(cluster.id, cluster.path, act)
        if isinstance(lines, Unread):
            return lines
        return sum(
            line.offset not in cluster.owed and line.offset not in marked and is_wanted(wanted, line.message, line.entry)
            for line in lines
        )

    def _read_file(self, cluster: Cluster, length: int | None) -> Coroutine[Deferred[Any], Any, _Lines | Unread]:
        act = partial(_read_lines, self._disk, cluster.path, cluster.id.area, length)
        return self._reader.read(cluster.id, cluster.path, act)

    async def _read(self, cluster: Cluster, now: float) -> None:
        """Read the committed lines of a cluster into memory. A cluster that can't be read is tried again later."""
        length, flushes = cluster.length, cluster.begin_read()
        try:
            with cluster.reading() as marked:
                read = await self._read_file(cluster, length)
                if isinstance(read, Unread):
                    if read.gaps:
                        self._read_later(cluster, flushes, now)
                    return
                lines, bad = read
                if bad:
                    await self.quarantine(cluster, bad)
        except BaseException:
            self._read_later(cluster, flushes, now)
            raise
        if cluster.live is None:
            cluster.count_live(
                sum(not (line.is_done or line.offset in cluster.owed or line.offset in marked) for line in lines)
            )
        cluster.apply_limits(lines)
        self._index.keep_read(cluster, lines, marked, length, flushes, now)

    def _read_later(self, cluster: Cluster, flushes: list[Flush], now: float) -> None:
        """Schedule the next read of a cluster that could not be read."""
        cluster.put_flushes_back(flushes)
        self._index.schedule_read(cluster, now + UNREADABLE_S)

    async def quarantine(self, cluster: Cluster, bad: list[BadLine]) -> None:
        """Keep a copy of lines that fail their check, and log those that are new."""
        self.bad_lines += len(bad)
        for line in bad:
            name = f"{cluster.id.name.replace('/', '-')}-{line.offset}-{zlib.crc32(line.data):08x}"
            note = b"from %b at %d\n" % (os.fsencode(cluster.path), line.offset)
            keep = partial(keep_corrupt, self._disk, self._corrupt_path, name, note, line.data)
            try:
                if not await self._quarantine_lock.run(self._worker.run, keep):
                    continue
                where = f"set aside in {self._corrupt_path}"
            except OSError as error:
                where = f"it can't be set aside: {error}"
            self._log.error(
                "A line of {path} at {offset} does not check; {where}; the rest goes on.",
                path=cluster.path,
                offset=line.offset,
                where=where,
            )


def _read_lines(disk: IDisk, path: str, area: Area, length: int | None) -> _Lines:
    lines: list[FoundLine] = []
    bad: list[BadLine] = []
    for found in read_lines(read_file(disk, path, length), area, length):
        if isinstance(found, BadLine):
            bad.append(found)
        else:
            lines.append(found)
    return lines, bad
