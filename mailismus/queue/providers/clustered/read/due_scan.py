"""Visiting clusters: reading their lines from disk, a cluster at a time, to hand out what is due.

Bytes that do not check are copied into `queue/corrupt/` and logged; every other line goes on. A cluster that can't be read
is visited again later; the rest goes on (`reading`).
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

from mailismus.disk.interface import IDisk, close_read
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Area, Entry, Filter, Flushed, Message, Predicate
from mailismus.queue.providers.clustered.format.cluster import BadLine, FoundLine, read_lines
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.spool.quarantine import write_whole

UNREADABLE_S = 60.0
"""Seconds until a cluster that can't be read is tried again."""

_Lines = tuple[list[FoundLine], list[BadLine]]


def read_file(disk: IDisk, path: str, length: int | None) -> bytes:
    """All of a file, or as much of it as counts. Raises OSError."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size() if length is None else length)
    finally:
        close_read(file)


def is_wanted(wanted: Filter, message: Message, entry: Entry) -> bool:
    """Whether an entry matches, its area aside."""
    return wanted.spool_id in (None, message.spool_id) and wanted.matches(message, entry)


def keep_corrupt(disk: IDisk, directory: str, name: str, note: bytes, data: bytes) -> bool:
    """A copy of bytes that do not check, with a note where from; the first copy of a name stays (False). Durable afterwards.
    Raises OSError."""
    path = os.path.join(directory, name)
    is_new = not disk.exists(path)
    if is_new:
        write_whole(disk, path, [note, data])
    disk.sync_directory(directory)  # always: whoever made it may have been killed before this
    return is_new


class DueScan:
    """Takes from clusters. One visit of an area at a time."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        queue_path: str,
        worker: IWorker,
        reader: ClusterReader,
        young: Memtable,
        index: ClusterIndex,
    ) -> None:
        self._disk = disk
        self._corrupt_path = os.path.join(queue_path, "corrupt")
        self._worker = worker
        self._reader = reader
        self._index = index
        self._young = young
        self._locks = {area: DeferredLock() for area in Area}
        self._aside = DeferredLock()
        """Held while a line is copied: the reference scan and a visit may find the same one at once, and two writers of one
        copy would take it away from each other."""
        self.bad_lines = 0
        """Lines that did not check."""

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        """As `IQueue.take`; never fails."""
        self._index.allow(area, per_message)
        if limit <= 0 or not self._index.is_due(area, now):
            return succeed(self._young.take(area, limit, now, per_message))
        return Deferred.fromCoroutine(self._take_both(area, limit, now, per_message))

    async def _take_both(self, area: Area, limit: int, now: float, per_message: int) -> list[Message]:
        """Young and resting, half of each while both have some: neither starves the other."""
        share = max(1, limit // 2) if self._young.has_ready(area) else limit
        taken = await self._take_resting(area, share, now, per_message)
        left = limit - sum(len(message.entries) for message in taken)
        young = self._young.take(area, left, now, per_message)
        left -= sum(len(message.entries) for message in young)
        taken += young
        if left > 0 and share < limit:
            taken += await self._take_resting(area, left, now, per_message)
        return taken

    def _take_resting(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        """One visit of an area at a time."""
        return self._locks[area].run(lambda: Deferred.fromCoroutine(self._take(area, limit, now, per_message)))

    def _out_young(self, spool_id: SpoolId) -> int:
        """How many entries of the message are out while young."""
        young = self._young.messages.get(spool_id)
        return len(young.out) if young is not None else 0

    async def _take(self, area: Area, limit: int, now: float, per_message: int) -> list[Message]:
        taken: list[Message] = []
        with closing(self._index.due(area, now)) as due:
            for cluster, since in due:
                if cluster.unread_at is not None and cluster.unread_at <= now:
                    await self._read(cluster, now)
                found = self._index.hand_out(cluster, since, now, limit, per_message, self._out_young)
                taken += found
                limit -= sum(len(message.entries) for message in found)
                if limit <= 0:
                    break
        return taken

    async def flush(self, wanted: Filter, now: float) -> Flushed:
        """Matching deferred entries are due now. A cluster that can't be read is passed over."""
        count, gaps = 0, Gaps()
        if wanted.area not in (None, Area.DEFERRED):
            return Flushed(0)
        for young in list(self._young.messages.values()):
            if wanted.spool_id not in (None, young.message.spool_id):
                continue
            for entry in list(young.entries.values()):
                if entry.area is Area.DEFERRED and wanted.matches(young.message, entry):
                    self._young.visit(young, entry, now)
                    count += 1
        for cluster in list(self._index.clusters.values()):
            if cluster.id.area is Area.DEFERRED:
                found = await self._count_matching(cluster, wanted)
                if isinstance(found, Unread):
                    gaps.add(found.gaps)
                elif found and self._index.clusters.get(cluster.id) is cluster:
                    count += found
                    cluster.flushes.append(partial(is_wanted, wanted))
                    self._index.read_again(cluster, now)
        return Flushed(count, gaps.all())

    async def _count_matching(self, cluster: Cluster, wanted: Filter) -> int | Unread:
        """Live lines of a cluster that match."""
        with cluster.reading() as marked:
            read = await self._read_file(cluster, cluster.length)
        if isinstance(read, Unread):
            return read
        lines, _ = read
        return sum(
            not (line.is_done or line.offset in cluster.owed or line.offset in marked)
            and is_wanted(wanted, line.message, line.entry)
            for line in lines
        )

    def _read_file(self, cluster: Cluster, length: int | None) -> Coroutine[Deferred[Any], Any, _Lines | Unread]:
        act = partial(_read_lines, self._disk, cluster.path, cluster.id.area, length)
        return self._reader.read(cluster.id, cluster.path, act)

    async def _read(self, cluster: Cluster, now: float) -> None:
        """Read the lines of a cluster that count into memory. One that can't be read is tried again later."""
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
                    await self.set_aside(cluster, bad)
        except BaseException:
            self._read_later(cluster, flushes, now)
            raise
        if cluster.live is None:
            cluster.count_live(
                sum(not (line.is_done or line.offset in cluster.owed or line.offset in marked) for line in lines)
            )
        cluster.heed_limits(lines)
        self._index.keep_read(cluster, lines, marked, length, flushes, now)

    def _read_later(self, cluster: Cluster, flushes: list[Predicate], now: float) -> None:
        """It could not be read."""
        cluster.put_flushes_back(flushes)
        self._index.read_again(cluster, now + UNREADABLE_S)

    async def set_aside(self, cluster: Cluster, bad: list[BadLine]) -> None:
        """Keep a copy of lines that do not check, and tell of those that are new."""
        self.bad_lines += len(bad)
        for line in bad:
            name = f"{cluster.id.name.replace('/', '-')}-{line.offset}-{zlib.crc32(line.data):08x}"
            note = b"from %b at %d\n" % (os.fsencode(cluster.path), line.offset)
            keep = partial(keep_corrupt, self._disk, self._corrupt_path, name, note, line.data)
            try:
                if not await self._aside.run(self._worker.run, keep):
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
