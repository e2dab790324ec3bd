"""Reference scan: reads every line of the queue, beside all other work, to learn which messages are referenced.

The first scan after a start counts references and live lines, and finds stray message files. Later scans resolve the
messages of which the reference cache is unsure. A worker reads one cluster at a time. A scan that can't read a cluster is
abandoned, and no bytes are removed.
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

_ID_PATTERN = re.compile(rb"[0-9A-F]{16}")
"""In a damaged line: the bytes of such a message stay, for a repair of the line."""
_SEVERAL = 2
"""Stands for the number of recipients of a message of which only the id is known."""

_Lines = tuple[list[ScannedLine], list[BadLine]]
Quarantine = Callable[[Cluster, list[BadLine]], Coroutine[Deferred[bool], object, None]]


class ReferenceScan:
    """Scans, one at a time. `release` is called with messages whose bytes may be removed."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        spool_path: str,
        worker: IWorker,
        memtable: Memtable,
        reader: ClusterReader,
        references: ReferenceCache,
        first_new: SpoolId,
        release: Callable[[SpoolId], None],
        *,
        names_recipients: bool,
        corrupt_path: str,
        quarantine: Quarantine,
    ) -> None:
        """`names_recipients`: message files may have a name for each recipient, and the sweep must learn which of these
        live. `corrupt_path`: the quarantine; `quarantine` copies damaged lines there."""
        self._disk = disk
        self._spool_path = spool_path
        self._worker = worker
        self._memtable = memtable
        self._reader = reader
        self._references = references
        self._first_new = first_new
        self._release = release
        self._names_recipients = names_recipients
        self._corrupt_path = corrupt_path
        self._quarantine = quarantine
        self._is_careful = False
        self._is_stopped = False
        self.is_running = False
        self.has_failed = False
        """The last scan could not read every cluster."""
        self.has_run = False
        """The first scan has ended: live lines are counted, and stray message files are removed or about to be."""
        self._protected: set[SpoolId] = set()
        """Messages that got new lines during a scan: it may have passed the place of those lines before."""
        self.strays = 0
        """Stray message files removed."""

    def stop(self) -> None:
        """Scan no further cluster."""
        self._is_stopped = True

    def count_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """Count a new line of this message: it was moved, retried or bounced. Call this before the old line is marked."""
        if self.is_running:
            self._protected.add(spool_id)
        scan = self._references.scan
        if scan is not None:
            scan.count_line(spool_id, recipient_count)

    async def run(self) -> None:
        """Make one scan. Never fails."""
        self.is_running = True
        try:
            await self._run()
        finally:
            self.is_running = False
            self._protected.clear()

    async def _run(self) -> None:
        self.has_failed = False
        is_first = not self.has_run
        scan = self._references.begin_scan()
        seen: array[int] = array("Q")
        for journaled in self._memtable.messages.values():
            if journaled.is_in_silo:
                for _ in journaled.entries:
                    scan.saw_line(journaled.message.spool_id, journaled.message.recipient_count)
        for cluster in list(self._reader.cluster_index.clusters.values()):
            if self._is_stopped:
                scan.abandon()
                return
            act = partial(_scan, self._disk, cluster.path, cluster.length)
            with cluster.reading() as marked:
                read = await self._reader.read(cluster.id, cluster.path, act)
            if isinstance(read, Unread):
                if not read.gaps:
                    continue  # the cluster was removed: it had no live line
                self.has_failed = True
                scan.abandon()
                return
            lines, bad = read
            self._count_lines(cluster, lines, marked, scan.saw_line, seen if is_first else None)
            if bad:
                await self._quarantine(cluster, bad)
            for line in bad:
                for found in _ID_PATTERN.findall(line.data):
                    self.count_line(SpoolId(int(found, 16)), _SEVERAL)
        for spool_id in scan.end():
            self._release(spool_id)
        if is_first:
            self.has_run = True
            await self._sweep(seen)

    def _count_lines(
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
        """Remove message files of earlier starts that no line needs."""
        ids = array("Q", sorted(seen))
        known_before = set(self._memtable.messages)

        def is_needed(spool_id: SpoolId, number: int) -> bool:
            if spool_id in self._memtable.messages or spool_id in self._protected or spool_id in known_before:
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
        """Sweep one silo, in a worker. While the quarantine has files, a stray may belong to one of them, and is moved
        there."""
        self._is_careful = bool(self._disk.list_directory(self._corrupt_path))
        aside = self._corrupt_path if self._is_careful else ""
        return sweep_silo(self._disk, self._spool_path, silo, self._first_new, is_needed, aside)


def _key(spool_id: SpoolId, number: int) -> int:
    """Return 64 bits that stand for a name. If two names share them, one stays longer than needed."""
    return spool_id ^ number << 40


def _scan(disk: IDisk, path: str, length: int | None) -> _Lines:
    bad: list[BadLine] = []
    return list(scan_lines(read_file(disk, path, length), length, bad)), bad
