"""Search and counts of the queue. They change and lock nothing, and read one cluster at a time, in a worker. A count pauses
for mail; a count in another process disturbs mail less (`count_plan`).

A search goes over the memtable first, then over the clusters that existed when it began. So no entry is given twice: an
entry that is moved meanwhile lies in a cluster that is passed over; an entry of a cluster that is retried meanwhile is in
the part of the memtable that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Area, Entry, Filter, Message, Page, Summary
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine, read_lines
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.queue.providers.clustered.read.count_plan import CountingPlan
from mailismus.queue.providers.clustered.read.due_scan import is_wanted, read_file
from mailismus.queue.providers.clustered.read.planned_count import count_cluster
from mailismus.queue.sums import summary_of

COUNTED_BYTES = 1_000_000
"""Bytes of clusters that a count reads between two pauses: some 4 ms of work, in pieces of a cluster."""
PAUSE_S = 0.030


@attrs.frozen
class Cursor:
    """Position of a search: after an entry of the memtable, or after a line of a cluster."""

    newest: int
    """Number of the newest checkpoint when the search began."""
    lengths: dict[ClusterId, int]
    """Lengths of clusters then. Lines behind them were in the memtable, and have been searched."""
    in_memtable: QueueId | None
    cluster: ClusterId | None = None
    offset: int = -1


def cluster_order(cluster_id: ClusterId) -> tuple[str, str, int, int]:
    """Return the sort key of clusters in a search."""
    return cluster_id.area.value, cluster_id.slot, cluster_id.checkpoint, cluster_id.number


class QueueSearch:
    """Searches and counts memtable and clusters. `root`: the queue's directory; `newest`: the number of the newest durable
    checkpoint; `clock`: None in a process that has no other work."""

    def __init__(
        self,
        disk: IDisk,
        root: str,
        reader: ClusterReader,
        memtable: Memtable,
        cluster_index: ClusterIndex,
        newest: Callable[[], int],
        clock: IReactorTime | None = None,
    ) -> None:
        self._disk = disk
        self._root = root
        self._reader = reader
        self._memtable = memtable
        self._cluster_index = cluster_index
        self._newest = newest
        self._clock = clock

    def plan(self, refusing: str = "") -> CountingPlan:
        """Return the plan of a count of the present entries. `refusing`: see `Summary`."""
        return CountingPlan(self._root, self._memtable, self._cluster_index, self._newest(), refusing)

    async def summarize(self, refusing: str = "") -> Summary:
        """Return counts of every area. `refusing`: see `Summary`."""
        plan = self.plan()
        sums, gaps = plan.sums, Gaps()
        counted_bytes = 0
        for cluster in plan.clusters():
            read = await self._reader.read(cluster.id, cluster.path, partial(count_cluster, self._disk, cluster))
            if isinstance(read, Unread):
                gaps.add(read.gaps)
                continue
            cluster_bytes, found = read
            sums[cluster.id.area].add(found)
            counted_bytes += cluster_bytes
            if self._clock is not None and counted_bytes >= COUNTED_BYTES:
                await _pause(self._clock, PAUSE_S * counted_bytes / COUNTED_BYTES)
                counted_bytes = 0
        return summary_of(sums, gaps.all(), refusing)

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """Return at most `limit` matching entries after the cursor."""
        cursor = after if isinstance(after, Cursor) else Cursor(self._newest(), self._lengths(), None)
        messages: list[Message] = []
        gaps = Gaps()
        room = limit
        if cursor.cluster is None:
            for journaled in self._candidates(wanted, cursor.in_memtable):
                found = _matching(journaled, wanted, cursor.in_memtable)
                if found:
                    messages.append(attrs.evolve(journaled.message, entries=found[:room]))
                    if len(found) >= room:
                        last = QueueId(journaled.message.spool_id, found[room - 1].number)
                        return Page(tuple(messages), attrs.evolve(cursor, in_memtable=last))
                    room -= len(found)
        for cluster in self._clusters(cursor.cluster, cursor.newest):
            if wanted.area is not None and cluster.id.area is not wanted.area:
                continue
            lines = await self.live_lines(cluster)
            if isinstance(lines, Unread):
                gaps.add(lines.gaps)
                continue
            for line in lines:
                if cluster.id == cursor.cluster and line.offset <= cursor.offset:
                    continue
                if line.offset >= cursor.lengths.get(cluster.id, line.offset + 1):
                    break
                if not is_wanted(wanted, line.message, line.entry):
                    continue
                if messages and messages[-1].spool_id == line.message.spool_id:
                    messages[-1].entries.append(line.entry)
                else:
                    messages.append(attrs.evolve(line.message, entries=[line.entry]))
                room -= 1
                if not room:
                    at = attrs.evolve(cursor, in_memtable=None, cluster=cluster.id, offset=line.offset)
                    return Page(tuple(messages), at, gaps.all())
        return Page(tuple(messages), None, gaps.all())

    def _lengths(self) -> dict[ClusterId, int]:
        return {c.id: c.length for c in self._cluster_index.clusters.values() if c.length is not None}

    def _clusters(self, first: ClusterId | None, newest: int) -> Iterator[Cluster]:
        """Yield clusters of checkpoints up to `newest`, in order, from `first` on."""
        for cluster_id in sorted(self._cluster_index.clusters, key=cluster_order):
            cluster = self._cluster_index.clusters.get(cluster_id)
            if cluster is None or cluster_id.checkpoint > newest:
                continue
            if first is None or cluster_order(cluster_id) >= cluster_order(first):
                yield cluster

    async def live_lines(self, cluster: Cluster) -> Sequence[FoundLine] | Unread:
        """Return the live lines of a cluster, out or not."""
        act = partial(read_live, self._disk, cluster.path, cluster.id.area, cluster.length)
        with cluster.reading() as marked:
            lines = await self._reader.read(cluster.id, cluster.path, act)
        if isinstance(lines, Unread):
            return lines
        cluster.apply_limits(lines)
        return [line for line in lines if line.offset not in cluster.owed and line.offset not in marked]

    def _candidates(self, wanted: Filter, after: QueueId | None) -> Iterator[JournaledMessage]:
        if wanted.spool_id is None:
            yield from self._memtable.messages_from(after.spool_id if after is not None else SpoolId(0))
        elif after is None or wanted.spool_id >= after.spool_id:
            journaled = self._memtable.messages.get(wanted.spool_id)
            if journaled is not None:
                yield journaled


def read_live(disk: IDisk, path: str, area: Area, length: int | None) -> list[FoundLine]:
    """Return the lines of a cluster file whose state byte is live. Raises OSError."""
    return [
        found
        for found in read_lines(read_file(disk, path, length), area, length)
        if isinstance(found, FoundLine) and not found.is_done
    ]


def _pause(clock: IReactorTime, seconds: float) -> Deferred[None]:
    done: Deferred[None] = Deferred()
    clock.callLater(seconds, done.callback, None)
    return done


def _matching(journaled: JournaledMessage, wanted: Filter, after: QueueId | None) -> list[Entry]:
    """Return copies of the matching entries: a listed entry must not change while a client prints it."""
    first = after.number + 1 if after is not None and after.spool_id == journaled.message.spool_id else 1
    return [
        attrs.evolve(entry)
        for number, entry in sorted(journaled.entries.items())
        if number >= first
        and (wanted.area is None or entry.area is wanted.area)
        and wanted.matches(journaled.message, entry)
    ]
