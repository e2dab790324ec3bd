"""Files of a checkpoint: the file work before its record, from contents to the one barrier.

1. Contents into silos. 2. Lines into clusters. 3. State bytes of finished lines; clusters without a live line, and files
of abandoned checkpoints, are unlinked (`cleanup`). 4. One barrier over all of that.

Knows which clusters are open, that is which still grow: the clusters of the newest durable checkpoint, until they are
full, unlinked, or touched by an abandoned one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import attrs

from mailismus.disk.presence import Presence
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import EntryKey, QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.checkpoint.cleanup import ClusterCleanup, Kept
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.checkpoint.write import CheckpointWriter, OpenCluster, copy_contents
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint, QueueState

SLICE = 200
"""Messages, or entries, handed to a worker at once."""


@attrs.frozen
class WrittenFiles:
    """Result of the file work: clusters that grow if the checkpoint becomes durable, and what cleaning up did."""

    grows: dict[tuple[Area, str], OpenCluster]
    kept: Kept


class CheckpointFiles:
    """Does the file work of one checkpoint after the other."""

    def __init__(
        self,
        write: CheckpointWriter,
        cleanup: ClusterCleanup,
        worker: IWorker,
        state: QueueState,
        segments: JournalSegments,
        presence: Presence,
        queue_path: str,
    ) -> None:
        """`presence`: of everything that a checkpoint writes to."""
        self.write = write
        self.queue_path = queue_path
        self._cleanup = cleanup
        self._worker = worker
        self._state = state
        self._segments = segments
        self._presence = presence
        self.open_clusters: dict[tuple[Area, str], OpenCluster] = {}
        self._syncs_all = True
        """The next one syncs the whole file system: what a start removed is durable with it."""

    async def work(self, pending: PendingCheckpoint, asked: Collection[EntryKey]) -> WrittenFiles:
        """Write what is in the memtable now, and make it durable. `asked`: entries whose settlement is in the journal and
        not durable yet. Raises OSError."""
        cluster_index = self._state.cluster_index
        messages = list(self._state.memtable.messages.values())
        entries = [(each.message, entry) for each in messages for entry in each.entries.values()]
        pending.begin({QueueId(message.spool_id, entry.number): entry for message, entry in entries}, asked)
        grows = dict(self.open_clusters)
        owed = {cluster: frozenset(cluster.owed) for cluster in cluster_index.clusters.values() if cluster.owed}
        await self._write_contents(pending, messages)
        for start in range(0, len(entries), SLICE):
            await self._worker.run(partial(self.write.write_lines, pending, entries[start : start + SLICE], grows))
        kept = await self._cleanup.run(pending, owed)
        self.open_clusters = _without(self.open_clusters, kept)
        await self._worker.run(partial(self._make_durable, pending, with_rest=self._syncs_all))
        return WrittenFiles(_without(grows, kept), kept)

    async def _write_contents(self, pending: PendingCheckpoint, messages: Sequence[JournaledMessage]) -> None:
        # with the contents in memory now: a message that ends meanwhile drops its own, unchecked
        in_journal = [(each, each.content) for each in messages if not each.is_in_silo]
        given_up = self._segments.given_up()
        for start in range(0, len(in_journal), SLICE):
            part = in_journal[start : start + SLICE]
            segments = self._segments.in_use()
            await self._worker.run(partial(copy_contents, self.write, pending, part, segments, given_up))

    def _make_durable(self, pending: PendingCheckpoint, *, with_rest: bool) -> None:
        """In a worker."""
        self.write.make_durable(pending, with_rest=with_rest)
        self._presence.check()  # a cluster that is not there counts as marked, cut and unlinked

    def lengths(self, written: WrittenFiles) -> dict[ClusterId, int]:
        """Return the lengths that the record tells the next start: of clusters that grow, and of files that could not be cut
        or unlinked (0)."""
        return {grown.id: grown.length for grown in written.grows.values()} | self._cleanup.lengths(written.kept)

    def note_durable(self, written: WrittenFiles) -> None:
        """The record is durable."""
        self._cleanup.committed(written.kept)
        self.open_clusters = written.grows
        self._syncs_all = False

    def note_abandoned(self, pending: PendingCheckpoint) -> None:
        """The checkpoint was abandoned: its own files are dead, and what it appended to open clusters does not count."""
        self._cleanup.abandoned(pending)
        # The journal may name places behind a committed length, for entries that are over: no other line gets one of them.
        self.open_clusters = {
            key: grown
            for key, grown in self.open_clusters.items()
            if grown.id not in pending.grown and grown.id.path(self.queue_path) not in pending.suspects
        }
        self._syncs_all = True


def _without(clusters: dict[tuple[Area, str], OpenCluster], kept: Kept) -> dict[tuple[Area, str], OpenCluster]:
    """Those that were not unlinked."""
    return {key: grown for key, grown in clusters.items() if grown.id not in kept.gone}
