"""Cluster index: the cluster files, the time of the next due scan of each, and their entries that are out (pure).

An entry in a cluster takes no memory, but for lines that were read and are due soon (`waiting_lines`). Entries that are
out are in memory until they are settled or given back. The index knows no file, no clock and no Deferred.

A due scan hands out lines that are in memory. It begins with a read of the file if another line may be due.

*Rules*: a due scan takes the cluster out of the schedule, and one take scans a cluster at most once (`due`). So a take ends,
whatever times lines and clusters have.

Source: `docs/formats/cluster`, `docs/durability`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Container, Generator, Iterable, Sequence

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Entry, Latest, Message, Shares
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine, Place
from mailismus.queue.providers.clustered.format.slots import slot_start
from mailismus.queue.providers.clustered.index.cluster import MAX_LIMITS, Cluster, Flush, Limit
from mailismus.queue.providers.clustered.index.held_clusters import HeldClusters
from mailismus.queue.providers.clustered.index.waiting_lines import HORIZON_S, LaterLines, WaitingLines


@attrs.frozen
class ClusteredEntry:
    """An entry that is out, and the place of its line. `message`: without entries."""

    message: Message
    entry: Entry
    cluster: Cluster
    offset: int

    @property
    def place(self) -> Place:
        """The place of its line, which never changes."""
        return Place(self.cluster.id, self.offset)


class ClusterIndex:
    """Index of all committed clusters."""

    def __init__(self) -> None:
        self.clusters: dict[ClusterId, Cluster] = {}
        self.out: dict[QueueId, ClusteredEntry] = {}
        self._held = HeldClusters(self.clusters)
        self.later = LaterLines()
        self._scheduled: dict[Area, list[tuple[float, int, Cluster]]] = {area: [] for area in Area}
        self._order = itertools.count()

    # schedule

    def add(self, cluster: Cluster, unread_at: float | None) -> None:
        """Add a committed cluster; its lines are not in memory."""
        self.clusters[cluster.id] = cluster
        if unread_at is not None:
            self.schedule_read(cluster, unread_at)

    def schedule(self, cluster: Cluster, at: float) -> None:
        """Schedule a due scan of the cluster for this time, unless an earlier one is scheduled."""
        if cluster.next_scan is None or at < cluster.next_scan:
            cluster.next_scan = at
            heapq.heappush(self._scheduled[cluster.id.area], (at, next(self._order), cluster))

    def schedule_read(self, cluster: Cluster, at: float) -> None:
        """Schedule a due scan with a read of the file: at this time a line may be due that is not in memory."""
        if cluster.unread_at is None or at < cluster.unread_at:
            cluster.unread_at = at
        self.schedule(cluster, at)

    def _schedule_first(self, cluster: Cluster, at: float) -> None:
        """Schedule the next due scan before all others of this time: its due lines are in memory, and so those of one
        cluster at a time are."""
        cluster.next_scan = at
        heapq.heappush(self._scheduled[cluster.id.area], (at, -next(self._order), cluster))

    def hasten(self, latest: Latest) -> set[Area]:
        """As `IQueue.hasten`, for all lines that are committed now. Return the areas in which entries may have become due.

        Clusters in a slot that `latest` does not change are passed over. No file is read before its time.
        """
        touched = set()
        for cluster in self.clusters.values():
            start = slot_start(cluster.id.slot) if cluster.id.slot else None
            if start is None or latest(cluster.id.area, None, start) < start:
                self.limit(cluster, 0, latest)
                touched.add(cluster.id.area)
        return touched

    def limit(self, cluster: Cluster, first: int, latest: Latest) -> None:
        """Limit the times of the lines from this offset on. Lines in memory are dropped, and read again."""
        cluster.limits.append(Limit(first, cluster.end, latest))
        del cluster.limits[:-MAX_LIMITS]
        for offset, until in cluster.not_before.items():
            cluster.not_before[offset] = latest(cluster.id.area, None, until)
        if cluster.waiting is not None:
            cluster.waiting.clear()
            cluster.waiting = None
        if cluster.next_scan is not None:
            self.schedule_read(cluster, latest(cluster.id.area, None, cluster.next_scan))

    def next_due(self, area: Area) -> float | None:
        """Return the time of the next due scan of this area."""
        scheduled = self._scheduled[area]
        while scheduled:
            at, _, cluster = scheduled[0]
            if cluster.next_scan == at and self.clusters.get(cluster.id) is cluster:
                return at
            heapq.heappop(scheduled)
        return None

    def is_due(self, area: Area, now: float) -> bool:
        """Whether a cluster of this area is due for a scan."""
        at = self.next_due(area)
        return at is not None and at <= now

    def due(self, area: Area, now: float) -> Generator[tuple[Cluster, float]]:
        """Yield each cluster of this area that is due, once, and since when; a step takes one out of the schedule. A cluster
        that is scheduled again meanwhile stays so, for the next caller. A caller that stops early closes the iterator."""
        seen: set[ClusterId] = set()
        again: list[tuple[float, int, Cluster]] = []
        try:
            while self.is_due(area, now):
                scheduled = at, _, cluster = heapq.heappop(self._scheduled[area])
                if cluster.id in seen:
                    again.append(scheduled)
                    continue
                seen.add(cluster.id)
                cluster.next_scan = None
                yield cluster, at
        finally:
            for scheduled in again:
                heapq.heappush(self._scheduled[area], scheduled)

    # taking

    def keep_read(
        self,
        cluster: Cluster,
        lines: Iterable[FoundLine],
        marked: Container[int],
        length: int | None,
        flushes: Sequence[Flush],
        now: float,
    ) -> None:
        """Keep the lines of a read: of the first `length` bytes of the file (None: all of it). `marked`: offsets marked
        during the read; `flushes`: those that the read serves (`Cluster.begin_read`)."""
        found: list[tuple[FoundLine, float]] = []
        not_before = cluster.not_before
        for line in lines:
            offset = line.offset
            if line.is_done or cluster.is_hidden(offset) or offset in marked:
                continue
            at = not_before.get(offset)
            if at is None:
                at = line.entry.due_at
                if at > now and any(flush.matches(line) for flush in flushes):
                    at = not_before[offset] = now
            found.append((line, at))
        unread_at = self._waiting_of(cluster).replace(found, length, now)
        if unread_at is not None:
            self.schedule_read(cluster, unread_at)

    def hand_out(self, cluster: Cluster, since: float, now: float, limit: int, shares: Shares | None) -> list[Message]:
        """Hand out due lines that are in memory, and schedule the next due scan of the cluster, which was due since `since`:
        later than `now`, but for lines that are left because of `limit` and for events after this due scan began."""
        messages: list[Message] = []
        waiting = cluster.waiting
        if waiting is not None:
            for line in waiting.due(now, limit, shares):
                limit -= 1
                self.hold(ClusteredEntry(line.message, line.entry, cluster, line.offset))
                if messages and messages[-1].spool_id == line.message.spool_id:
                    messages[-1].entries.append(line.entry)
                else:
                    messages.append(line.message.with_entries([line.entry]))
        held = waiting.held if waiting is not None else ()
        if held or cluster.held_for:
            for next_id in self._held.update(cluster, held, {message.sender for message in messages}):
                self.schedule(self.clusters[next_id], now)
        if waiting is not None:
            if waiting.has_due and limit <= 0:
                self._schedule_first(cluster, since)
                return messages
            next_at = waiting.next_at(now)
            if next_at is not None:
                self.schedule(cluster, next_at)
            if not waiting:
                waiting.clear()
                cluster.waiting = None
        if cluster.unread_at is not None:
            self.schedule(cluster, cluster.unread_at)
        return messages

    def room_again(self) -> set[Area]:
        """As `IQueue.room_again`. Return the areas with clusters that are scanned again."""
        areas = set()
        for cluster_id in self._held.first_of_each():
            self.schedule(self.clusters[cluster_id], 0.0)
            areas.add(cluster_id.area)
        return areas

    def _waiting_of(self, cluster: Cluster) -> WaitingLines:
        if cluster.waiting is None:
            cluster.waiting = WaitingLines(cluster.id.area, self.later)
        return cluster.waiting

    def _keep(self, cluster: Cluster, line: FoundLine, at: float) -> None:
        """Keep a line in memory that may be taken from `at` on, if there is room; else schedule a read."""
        if self.later.room:
            self._waiting_of(cluster).add(line, at)
            self.schedule(cluster, at)
        else:
            self.schedule_read(cluster, at)

    def hold(self, clustered: ClusteredEntry) -> None:
        """Note that this entry is out."""
        cluster = clustered.cluster
        cluster.taken.add(clustered.offset)
        cluster.not_before.pop(clustered.offset, None)
        if cluster.waiting is not None:
            cluster.waiting.forget(clustered.offset)
        self.out[QueueId(clustered.message.spool_id, clustered.entry.number)] = clustered

    def _release(self, queue_id: QueueId) -> ClusteredEntry | None:
        clustered = self.out.pop(queue_id, None)
        if clustered is not None:
            clustered.cluster.taken.discard(clustered.offset)
        return clustered

    def give_back(self, queue_ids: Iterable[QueueId], not_before: float) -> set[Area]:
        """As `IQueue.give_back`. Return the areas of the entries."""
        touched = set()
        for queue_id in queue_ids:
            clustered = self._release(queue_id)
            if clustered is not None:
                line = FoundLine(clustered.offset, False, clustered.message, clustered.entry)
                self.stay(clustered.cluster, line, not_before)
                touched.add(clustered.cluster.id.area)
        return touched

    def stay(self, cluster: Cluster, line: FoundLine, not_before: float) -> None:
        """Keep a line that was given back, until this time."""
        cluster.not_before[line.offset] = not_before
        self._keep(cluster, line, not_before)

    def arrive(self, cluster: Cluster, line: FoundLine, now: float) -> None:
        """Add a line that was appended. It is kept in memory only if other lines of its cluster are: a checkpoint is to free
        memory."""
        due_at = line.entry.due_at
        if cluster.waiting is not None and due_at <= now + HORIZON_S:
            self._keep(cluster, line, due_at)
        else:
            self.schedule_read(cluster, due_at)

    def settle(self, queue_id: QueueId) -> ClusteredEntry | None:
        """Note that the settlement of an entry is durable: its line is done and owed its mark. Return the entry."""
        clustered = self._release(queue_id)
        if clustered is not None:
            self.owe(clustered.cluster, clustered.offset)
        return clustered

    def owe(self, cluster: Cluster, offset: int) -> None:
        """Note that this line is done and owed its mark."""
        if offset not in cluster.owed:
            cluster.owed.add(offset)
            if cluster.live is not None:
                cluster.live -= 1

    def has_marks(self) -> bool:
        """Whether a finished line is not marked yet. Looks at every cluster."""
        return any(cluster.owed for cluster in self.clusters.values())
