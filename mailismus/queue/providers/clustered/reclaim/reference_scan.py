"""The walk: one look at every line of the queue, beside all that goes on.

The first one, after a start, counts references and live lines, and finds stray message files; later ones resolve what the
reference cache is unsure of. A cluster at a time, in a worker. While one can't be read it comes to nothing, and bytes stay.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Coroutine
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.format.cluster import BadLine, ScannedLine, scan_lines
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.queue.providers.clustered.read.due_scan import read_file
from mailismus.spool.references import ReferenceCache
from mailismus.spool.silo import SILO_COUNT
from mailismus.spool.sweep import sweep_silo

_LOOKS_LIKE_AN_ID = re.compile(rb"[0-9A-F]{16}")
"""In a damaged line: the bytes of such a message stay, for whoever repairs the line."""
_SEVERAL = 2
"""Stands for the recipients of a message of which only the name is known."""

_Lines = tuple[list[ScannedLine], list[BadLine]]
SetAside = Callable[[Cluster, list[BadLine]], Coroutine[Deferred[bool], object, None]]


class ReferenceScan:
    """Walks, one at a time. `release` is told of messages whose bytes may go."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        spool_path: str,
        worker: IWorker,
        young: Memtable,
        reader: ClusterReader,
        references: ReferenceCache,
        first_new: SpoolId,
        release: Callable[[SpoolId], None],
        *,
        names_recipients: bool,
        corrupt_path: str,
        set_aside: SetAside,
    ) -> None:
        """`names_recipients`: message files may have names of recipients, and the sweep is to tell which of these live.
        `corrupt_path`: where what does not check is set aside, lines by `set_aside`."""
        self._disk = disk
        self._spool_path = spool_path
        self._worker = worker
        self._young = young
        self._reader = reader
        self._references = references
        self._first_new = first_new
        self._release = release
        self._names_recipients = names_recipients
        self._corrupt_path = corrupt_path
        self._set_aside = set_aside
        self._is_careful = False
        self._is_stopped = False
        self.is_running = False
        self.has_failed = False
        """The last one could not read everything."""
        self.has_looked = False
        """The first one is over: live lines are counted, stray message files gone or about to."""
        self._protected: set[SpoolId] = set()
        """Messages that got new lines while a walk ran: where they are now it may not have looked."""
        self.strays = 0
        """Stray message files removed."""

    def stop(self) -> None:
        """No further cluster."""
        self._is_stopped = True

    def count_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """A line of this message is new: it was moved, retried or bounced. To be told before the old one goes."""
        if self.is_running:
            self._protected.add(spool_id)
        walk = self._references.scan
        if walk is not None:
            walk.count_line(spool_id, recipient_count)

    async def run(self) -> None:
        """One walk. Never fails."""
        self.is_running = True
        try:
            await self._run()
        finally:
            self.is_running = False
            self._protected.clear()

    async def _run(self) -> None:
        self.has_failed = False
        is_first = not self.has_looked
        walk = self._references.begin_scan()
        seen: array[int] = array("Q")
        for young in self._young.messages.values():
            if young.is_in_silo:
                for _ in young.entries:
                    walk.saw_line(young.message.spool_id, young.message.recipient_count)
        for cluster in list(self._reader.resting.clusters.values()):
            if self._is_stopped:
                walk.abandon()
                return
            act = partial(_scan, self._disk, cluster.path, cluster.length)
            with cluster.reading() as marked:
                read = await self._reader.read(cluster.id, cluster.path, act)
            if isinstance(read, Unread):
                if not read.gaps:
                    continue  # it is gone: all of it was over
                self.has_failed = True
                walk.abandon()
                return
            lines, bad = read
            self._see(cluster, lines, marked, walk.saw_line, seen if is_first else None)
            if bad:
                await self._set_aside(cluster, bad)
            for line in bad:
                for found in _LOOKS_LIKE_AN_ID.findall(line.data):
                    self.count_line(SpoolId(int(found, 16)), _SEVERAL)
        for spool_id in walk.end():
            self._release(spool_id)
        if is_first:
            self.has_looked = True
            await self._sweep(seen)

    def _see(
        self,
        cluster: Cluster,
        lines: list[ScannedLine],
        marked: Container[int],
        saw: Callable[[SpoolId, int], None],
        seen: array[int] | None,
    ) -> None:
        live, last = 0, -1
        owed = cluster.owed
        for offset, is_done, spool_id, number, count in lines:
            if not is_done and offset not in owed and offset not in marked:
                live += 1
                if count > 1:
                    saw(spool_id, count)
                if seen is not None and spool_id != last:
                    seen.append(spool_id)
                    last = spool_id
                if seen is not None and count > 1 and self._names_recipients:
                    seen.append(_key(spool_id, number))
        if cluster.live is None:
            cluster.count_live(live)

    async def _sweep(self, seen: array[int]) -> None:
        """Message files of earlier starts that no line needs."""
        ids = array("Q", sorted(seen))
        young_then = set(self._young.messages)

        def is_needed(spool_id: SpoolId, number: int) -> bool:
            if spool_id in self._young.messages or spool_id in self._protected or spool_id in young_then:
                return True
            wanted = _key(spool_id, number) if number and self._names_recipients else spool_id
            at = bisect_left(ids, wanted)
            return at < len(ids) and ids[at] == wanted

        for silo in range(SILO_COUNT):
            if self._is_stopped:
                return
            try:
                self.strays += await self._worker.run(partial(self._sweep_silo, silo, is_needed))
            except OSError as error:
                self._log.warn("Silo {silo} can't be swept: {error}", silo=silo, error=error)
        if self.strays and self._is_careful:
            self._log.warn(
                "{count} message files that no line names are moved to {path}, where lines that did not check are.",
                count=self.strays,
                path=self._corrupt_path,
            )
        elif self.strays:
            self._log.info("Removed {count} message files that no message needs.", count=self.strays)

    def _sweep_silo(self, silo: int, is_needed: Callable[[SpoolId, int], bool]) -> int:
        """In a worker. While something is set aside, strays may belong to it."""
        self._is_careful = bool(self._disk.list_directory(self._corrupt_path))
        aside = self._corrupt_path if self._is_careful else ""
        return sweep_silo(self._disk, self._spool_path, silo, self._first_new, is_needed, aside)


def _key(spool_id: SpoolId, number: int) -> int:
    """64 bits that stand for a name: two may share them, then one stays longer than needed."""
    return spool_id ^ number << 40


def _scan(disk: IDisk, path: str, length: int | None) -> _Lines:
    bad: list[BadLine] = []
    return list(scan_lines(read_file(disk, path, length), length, bad)), bad
