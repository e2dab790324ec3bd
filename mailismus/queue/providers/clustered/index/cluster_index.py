"""The resting: clusters as an index in memory, and the entries of them that are handed out.

Of an entry that rests nothing is in memory, but for lines that were read and are due soon (`waiting`). Of a cluster: how
much of it is committed, which of its lines are not to be handed out again, when it is worth the next visit. Entries that
were handed out are held until they are settled or given back. Knows no file, no clock and no Deferred.

A visit looks at the lines in memory; it begins with a read of the file when one that is not in memory may be due.

*Rules*: a visit takes the cluster out of the heap of visits, and a take visits a cluster once at most (`due`), so a take
ends, whatever times lines and clusters have.

Source: `docs/formats/cluster`, `docs/durability`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Container, Generator, Iterable, Sequence

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Latest, Message, Predicate
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine, Place
from mailismus.queue.providers.clustered.format.slots import slot_start
from mailismus.queue.providers.clustered.index.cluster import MAX_LIMITS, Cluster, Limit
from mailismus.queue.providers.clustered.index.waiting_lines import HORIZON_S, LaterLines, WaitingLines

OutYoung = Callable[[SpoolId], int]
"""How many entries of a message are out while young."""


@attrs.frozen
class ClusteredEntry:
    """An entry that is out, and where its line rests. `message` without entries."""

    message: Message
    entry: Entry
    cluster: Cluster
    offset: int

    @property
    def place(self) -> Place:
        """Of its line, for life."""
        return Place(self.cluster.id, self.offset)


class ClusterIndex:
    """All clusters that count."""

    def __init__(self) -> None:
        self.clusters: dict[ClusterId, Cluster] = {}
        self.out: dict[QueueId, ClusteredEntry] = {}
        self.out_of: dict[SpoolId, int] = {}
        """How many entries of a message are out."""
        self._held_back: dict[SpoolId, tuple[int, set[ClusterId]]] = {}
        """Messages that have as many entries out as they may: down to how many they go before the clusters that hold the
        others are worth a visit."""
        self._held: dict[Area, set[ClusterId]] = {area: set() for area in Area}
        """Clusters with lines that were held back because of such a message."""
        self._held_at = dict.fromkeys(Area, 0)
        """The least number of entries out that one of the area was held back for."""
        self.woken: set[Area] = set()
        """Areas in which something may be handed out because something came back. For whoever tells those who wait."""
        self.later = LaterLines()
        self._visits: dict[Area, list[tuple[float, int, Cluster]]] = {area: [] for area in Area}
        self._order = itertools.count()

    # visits

    def add(self, cluster: Cluster, unread_at: float | None) -> None:
        """A cluster that counts from now on; its lines are not in memory."""
        self.clusters[cluster.id] = cluster
        if unread_at is not None:
            self.read_again(cluster, unread_at)

    def visit(self, cluster: Cluster, at: float) -> None:
        """It is worth a visit at this time, or before."""
        if cluster.next_visit is None or at < cluster.next_visit:
            cluster.next_visit = at
            heapq.heappush(self._visits[cluster.id.area], (at, next(self._order), cluster))

    def read_again(self, cluster: Cluster, at: float) -> None:
        """It is worth a read at this time, or before: a line may be due then that is not in memory."""
        if cluster.unread_at is None or at < cluster.unread_at:
            cluster.unread_at = at
        self.visit(cluster, at)

    def _visit_next(self, cluster: Cluster, at: float) -> None:
        """Before all others of this time: the lines that wait of it are in memory, those of one cluster at a time."""
        cluster.next_visit = at
        heapq.heappush(self._visits[cluster.id.area], (at, -next(self._order), cluster))

    def hasten(self, latest: Latest) -> set[Area]:
        """As `IQueue.hasten`, for all lines that count now; the areas in which something may be due by it.

        What lies in a slot that `latest` leaves alone is passed over; else nothing is read for it before its time."""
        touched = set()
        for cluster in self.clusters.values():
            start = slot_start(cluster.id.slot) if cluster.id.slot else None
            if start is None or latest(cluster.id.area, None, start) < start:
                self.limit(cluster, 0, latest)
                touched.add(cluster.id.area)
        return touched

    def limit(self, cluster: Cluster, first: int, latest: Latest) -> None:
        """What waits of the lines from this offset on waits no longer than that. Lines in memory are read again."""
        cluster.limits.append(Limit(first, math.inf if cluster.length is None else cluster.length, latest))
        del cluster.limits[:-MAX_LIMITS]
        for offset, until in cluster.not_before.items():
            cluster.not_before[offset] = latest(cluster.id.area, None, until)
        if cluster.waiting is not None:
            cluster.waiting.clear()
            cluster.waiting = None
        if cluster.next_visit is not None:
            self.read_again(cluster, latest(cluster.id.area, None, cluster.next_visit))

    def next_due(self, area: Area) -> float | None:
        """When the next visit of this area is due."""
        visits = self._visits[area]
        while visits:
            at, _, cluster = visits[0]
            if cluster.next_visit == at and self.clusters.get(cluster.id) is cluster:
                return at
            heapq.heappop(visits)
        return None

    def is_due(self, area: Area, now: float) -> bool:
        """Whether a cluster of this area is worth a visit."""
        at = self.next_due(area)
        return at is not None and at <= now

    def due(self, area: Area, now: float) -> Generator[tuple[Cluster, float]]:
        """The clusters of this area that are due, and since when, each once: a step takes one visit out of the heap. A
        cluster that is due again meanwhile stays so, for the next caller. Who stops early closes the iterator."""
        seen: set[ClusterId] = set()
        again: list[tuple[float, int, Cluster]] = []
        try:
            while self.is_due(area, now):
                visit = at, _, cluster = heapq.heappop(self._visits[area])
                if cluster.id in seen:
                    again.append(visit)
                    continue
                seen.add(cluster.id)
                cluster.next_visit = None
                yield cluster, at
        finally:
            for visit in again:
                heapq.heappush(self._visits[area], visit)

    # taking

    def keep_read(
        self,
        cluster: Cluster,
        lines: Iterable[FoundLine],
        marked: Container[int],
        length: int | None,
        flushes: Sequence[Predicate],
        now: float,
    ) -> None:
        """The first `length` bytes of its file (None: all of it) have been read, and `marked` meanwhile; `flushes` were
        asked for before the read began. `Cluster.unread_at` and `Cluster.flushes` say what came up since."""
        found: list[tuple[FoundLine, float]] = []
        not_before = cluster.not_before
        for line in lines:
            offset = line.offset
            if line.is_done or cluster.is_hidden(offset) or offset in marked:
                continue
            at = not_before.get(offset)
            if at is None:
                at = line.entry.due_at
                if at > now and any(wanted(line.message, line.entry) for wanted in flushes):
                    at = not_before[offset] = now
            found.append((line, at))
        unread_at = self._waiting_of(cluster).replace(found, length, now)
        if unread_at is not None:
            self.read_again(cluster, unread_at)

    def hand_out(
        self, cluster: Cluster, since: float, now: float, limit: int, per_message: int, out_young: OutYoung
    ) -> list[Message]:
        """Hand out what is due of the lines in memory, and say when the cluster, due `since` then, is worth the next visit:
        later than `now`, but for lines that are left because of `limit` and what came up after this visit began."""
        messages: list[Message] = []
        waiting, out_of = cluster.waiting, self.out_of
        if waiting is not None:

            def has_room(spool_id: SpoolId) -> bool:
                return out_of.get(spool_id, 0) + out_young(spool_id) < per_message

            for line in waiting.due(now, limit, has_room):
                limit -= 1
                self.hold(ClusteredEntry(line.message, line.entry, cluster, line.offset))
                if messages and messages[-1].spool_id == line.message.spool_id:
                    messages[-1].entries.append(line.entry)
                else:
                    messages.append(attrs.evolve(line.message, entries=[line.entry]))
            self._note_held(cluster, waiting.held, per_message, out_young)
            if waiting.has_due and limit <= 0:
                self._visit_next(cluster, since)
                return messages
            next_at = waiting.next_at(now)
            if next_at is not None:
                self.visit(cluster, next_at)
            if not waiting:
                waiting.clear()
                cluster.waiting = None
        if cluster.unread_at is not None:
            self.visit(cluster, cluster.unread_at)
        return messages

    def _note_held(self, cluster: Cluster, held: Collection[SpoolId], per_message: int, out_young: OutYoung) -> None:
        area = cluster.id.area
        if not held:
            self._held[area].discard(cluster.id)
            return
        self._held_at[area] = min(per_message, self._held_at[area]) if self._held[area] else per_message
        self._held[area].add(cluster.id)
        for spool_id in held:
            if spool_id in self.out_of:
                wake_at = max(0, per_message // 2 - out_young(spool_id))
                self._held_back.setdefault(spool_id, (wake_at, set()))[1].add(cluster.id)

    def _waiting_of(self, cluster: Cluster) -> WaitingLines:
        if cluster.waiting is None:
            cluster.waiting = WaitingLines(self.later)
        return cluster.waiting

    def _keep(self, cluster: Cluster, line: FoundLine, at: float) -> None:
        """This line is at hand, and may be taken from `at` on: keep it in memory while there is room."""
        if self.later.room:
            self._waiting_of(cluster).add(line, at)
            self.visit(cluster, at)
        else:
            self.read_again(cluster, at)

    def hold(self, resting: ClusteredEntry) -> None:
        """This entry is out."""
        spool_id, cluster = resting.message.spool_id, resting.cluster
        cluster.taken.add(resting.offset)
        cluster.not_before.pop(resting.offset, None)
        if cluster.waiting is not None:
            cluster.waiting.forget(resting.offset)
        self.out[QueueId(spool_id, resting.entry.number)] = resting
        self.out_of[spool_id] = self.out_of.get(spool_id, 0) + 1

    def _release(self, queue_id: QueueId) -> ClusteredEntry | None:
        resting = self.out.pop(queue_id, None)
        if resting is not None:
            resting.cluster.taken.discard(resting.offset)
            spool_id = queue_id.spool_id
            left = self.out_of[spool_id] - 1
            if left:
                self.out_of[spool_id] = left
            else:
                del self.out_of[spool_id]
            held_back = self._held_back.get(spool_id)
            if held_back is not None and left <= held_back[0]:
                del self._held_back[spool_id]
                self._wake(held_back[1])
        return resting

    def allow(self, area: Area, per_message: int) -> None:
        """So many entries of a message may be out now: more, perhaps, than when some of the area were held back."""
        if self._held[area] and per_message > self._held_at[area]:
            held, self._held[area] = self._held[area], set()
            self._wake(held)

    def _wake(self, cluster_ids: Iterable[ClusterId]) -> None:
        """These clusters are worth a visit at once."""
        for cluster_id in cluster_ids:
            cluster = self.clusters.get(cluster_id)
            if cluster is not None:
                self.visit(cluster, 0.0)
                self.woken.add(cluster_id.area)

    def give_back(self, queue_ids: Iterable[QueueId], not_before: float) -> set[Area]:
        """As `IQueue.give_back`; the areas that entries went back to."""
        touched = set()
        for queue_id in queue_ids:
            resting = self._release(queue_id)
            if resting is not None:
                line = FoundLine(resting.offset, False, resting.message, resting.entry)
                self.stay(resting.cluster, line, not_before)
                touched.add(resting.cluster.id.area)
        return touched

    def stay(self, cluster: Cluster, line: FoundLine, not_before: float) -> None:
        """This line was given back, and stays until then."""
        cluster.not_before[line.offset] = not_before
        self._keep(cluster, line, not_before)

    def arrive(self, cluster: Cluster, line: FoundLine, now: float) -> None:
        """This line was appended. It is in memory already, but only what lies among others that are stays there: what is
        moved to disk is to leave the memory."""
        due_at = line.entry.due_at
        if cluster.waiting is not None and due_at <= now + HORIZON_S:
            self._keep(cluster, line, due_at)
        else:
            self.read_again(cluster, due_at)

    def settle(self, queue_id: QueueId) -> ClusteredEntry | None:
        """Its settle is durable: the line is over, and owed its mark."""
        resting = self._release(queue_id)
        if resting is not None:
            self.owe(resting.cluster, resting.offset)
        return resting

    def owe(self, cluster: Cluster, offset: int) -> None:
        """This line is over."""
        if offset not in cluster.owed:
            cluster.owed.add(offset)
            if cluster.live is not None:
                cluster.live -= 1

    def has_marks(self) -> bool:
        """Whether a finished line is not marked yet. Looks at every cluster."""
        return any(cluster.owed for cluster in self.clusters.values())
