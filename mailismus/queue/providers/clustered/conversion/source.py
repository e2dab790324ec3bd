"""All entries and contents of a stopped clustered queue, one after the other, for a conversion (`IQueueSource`).

*Rules*: one cluster is in memory at a time, and what a start reads of the journal. What does not check is told (`damage`):
nothing is passed over in silence, as a listing may.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.provider import StoredPart
from mailismus.queue.providers.clustered.format.cluster import BadLine, read_lines
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.read.cluster_file import read_file
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.clusters import index_clusters
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_queue
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, load
from mailismus.queue.providers.clustered.recovery.salvage import salvage
from mailismus.queue.providers.clustered.recovery.stopped_contents import StoppedContents, guessed_segments


class ClusteredSource:
    """`IQueueSource`. Made by `open_source`."""

    def __init__(
        self, disk: IDisk, loaded: ReplayedQueue, index: ClusterIndex, contents: StoppedContents, damage: str
    ) -> None:
        self._disk, self._loaded, self._index, self._contents = disk, loaded, index, contents
        self._damage = damage

    @property
    def epoch(self) -> int:
        return self._loaded.epoch

    @property
    def damage(self) -> str:
        return self._damage

    def parts(self) -> Iterator[StoredPart]:
        for _, young in sorted(self._loaded.youngs.items()):
            entries = [entry for _, entry in sorted(young.entries.items())]
            if entries:
                yield StoredPart(attrs.evolve(young.message, entries=entries))
        for cluster in list(self._index.clusters.values()):
            yield from self._parts_in(cluster)

    def close(self) -> None:
        """Nothing stays open."""

    def content(self, spool_id: SpoolId, content_at: bytes) -> Iterator[bytes]:
        young = self._loaded.youngs.get(spool_id)
        pieces = self._contents.read(spool_id)
        return pieces if young is None or young.is_in_silo else _checked(pieces, young)

    def _parts_in(self, cluster: Cluster) -> Iterator[StoredPart]:
        data = read_file(self._disk, cluster.path, cluster.length)
        for found in read_lines(data, cluster.id.area, cluster.length):
            if isinstance(found, BadLine):
                self._damage = self._damage or f"a line at {found.offset} of {cluster.path} does not check"
            elif not found.is_done and found.offset not in cluster.owed:
                yield StoredPart(attrs.evolve(found.message, entries=[found.entry]))


def _checked(pieces: Iterator[bytes], young: JournaledMessage) -> Iterator[bytes]:
    """The pieces of a content in the journal. Raises `Corrupt` at their end where they are not what was written there."""
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if checksum != young.checksum:
        raise Corrupt("", young.offset, f"the content of {young.message.spool_id:016X} does not check in the journal")


def _damage_of(loaded: ReplayedQueue, disk: IDisk, queue_path: str) -> str:
    for area in Area:
        if not disk.exists(path := os.path.join(queue_path, area.value)):
            return f"{path} is gone"
    for damage in loaded.journal.damages:
        return f"{damage.path} does not check at {damage.offset}"
    return "a record of the journal does not check" if loaded.bad_records else ""


def open_source(disk: IDisk, queue_path: str, spool_path: str) -> ClusteredSource:
    """The queue in these directories. Raises `NewerFormat`, `Corrupt`, `OSError`: FileNotFoundError where there is none."""
    journal_path = os.path.join(queue_path, "journal")
    if not disk.exists(journal_path):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    refuse_newer_queue(disk, queue_path)
    loaded = load(disk, journal_path)
    try:
        found = list(find_clusters(disk, queue_path))
        index = index_clusters(loaded, queue_path, found, salvage(loaded, disk, queue_path, found))
    finally:
        loaded.journal.close()
    memtable, segments = Memtable(), {}
    for spool_id in sorted(loaded.youngs):
        memtable.add(loaded.youngs[spool_id], 0.0)
    for segment in (*loaded.journal.others, *loaded.journal.used):
        if segment.header is not None:
            segments[segment.header.number] = segment.path
    contents = StoppedContents(memtable, disk, spool_path, segments, guessed_segments(loaded.journal))
    return ClusteredSource(disk, loaded, index, contents, _damage_of(loaded, disk, queue_path))
