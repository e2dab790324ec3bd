"""Visiting clusters: reading their lines from disk, a cluster at a time, to hand out what is due.

Bytes that do not check are copied into `queue/corrupt/` and logged; every other line goes on. A cluster that can't be read
is visited again later; the rest goes on.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from functools import partial

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.clustered.cluster import BadLine, FoundLine, read_lines
from mailismus.queue.providers.clustered.resting import Cluster, RestingIndex

UNREADABLE_S = 60.0
"""Seconds until a cluster that can't be read is tried again."""


def read_file(disk: IDisk, path: str, length: int | None) -> bytes:
    """All of a file, or as much of it as counts. Raises OSError."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size() if length is None else length)
    finally:
        file.close()


def keep_corrupt(disk: IDisk, directory: str, name: str, note: bytes, data: bytes) -> None:
    """A copy of bytes that do not check, with a note where from; the first copy of a name stays. Raises OSError."""
    path = os.path.join(directory, name)
    if disk.exists(path):
        return
    file = disk.create(path)
    try:
        file.write_at(0, [note, data])
        file.sync()
    finally:
        file.close()
    disk.sync_directory(directory)


class Visits:
    """Takes from clusters. One visit of an area at a time."""

    _log = Logger()

    def __init__(
        self, disk: IDisk, queue_path: str, worker: IWorker, index: RestingIndex, out_young: Callable[[SpoolId], int]
    ) -> None:
        self._disk = disk
        self._corrupt_path = os.path.join(queue_path, "corrupt")
        self._worker = worker
        self._index = index
        self._out_young = out_young
        self._locks = {area: DeferredLock() for area in Area}
        self.bad_lines = 0
        """Lines that did not check."""

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        """At most `limit` due entries; never fails."""
        return self._locks[area].run(
            lambda: Deferred.fromCoroutine(self._take(area, limit, now, per_message))  # one at a time
        )

    async def _take(self, area: Area, limit: int, now: float, per_message: int) -> list[Message]:
        taken: list[Message] = []
        while limit > 0:
            cluster = self._index.due(area, now)
            if cluster is None:
                break
            lines = cluster.waiting
            if lines is None:
                length = cluster.length
                lines = await self._read(cluster, now)
                if lines is None or cluster.length != length:
                    continue  # unreadable, or grown meanwhile
            found = self._index.choose(cluster, lines, now, limit, per_message, self._out_young)
            limit -= sum(len(message.entries) for message in found)
            taken += found
        return taken

    async def _read(self, cluster: Cluster, now: float) -> Sequence[FoundLine] | None:
        """The lines of a cluster that count; None: not now."""
        try:
            lines, bad = await self._worker.run(
                partial(_read_lines, self._disk, cluster.path, cluster.id.area, cluster.length)
            )
        except OSError as error:
            self._log.error("Cluster {path} can't be read: {error}", path=cluster.path, error=error)
            cluster.next_visit = None
            if self._index.clusters.get(cluster.id) is cluster:
                self._index.visit(cluster, now + UNREADABLE_S)
            return None
        if bad:
            await self._set_aside(cluster, bad)
        if cluster.live is None:
            cluster.live = sum(not line.is_done and line.offset not in cluster.owed for line in lines)
        return lines

    async def _set_aside(self, cluster: Cluster, bad: list[BadLine]) -> None:
        self.bad_lines += len(bad)
        for line in bad:
            self._log.error(
                "A line of {path} at {offset} does not check; set aside in {corrupt}, the rest goes on.",
                path=cluster.path,
                offset=line.offset,
                corrupt=self._corrupt_path,
            )
            name = f"{cluster.id.name.replace('/', '-')}-{line.offset}-{zlib.crc32(line.data):08x}"
            note = b"from %b at %d\n" % (os.fsencode(cluster.path), line.offset)
            try:
                await self._worker.run(partial(keep_corrupt, self._disk, self._corrupt_path, name, note, line.data))
            except OSError as error:
                self._log.error("It can't be set aside: {error}", error=error)


def _read_lines(disk: IDisk, path: str, area: Area, length: int | None) -> tuple[list[FoundLine], list[BadLine]]:
    lines: list[FoundLine] = []
    bad: list[BadLine] = []
    for found in read_lines(read_file(disk, path, length), area, length):
        if isinstance(found, BadLine):
            bad.append(found)
        else:
            lines.append(found)
    return lines, bad
