"""The resting: clusters as an index in memory, and the entries of them that are handed out.

Of an entry that rests nothing is in memory: its line is. Of a cluster: how much of it is committed, which of its lines
are not to be handed out again, when it is worth the next visit. Entries that were handed out are held until they are
settled or given back. Knows no file, no clock and no Deferred.

Source: `docs/formats/cluster`, `docs/durability`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Latest, Message, Predicate
from mailismus.queue.providers.clustered.calendar import slot_start
from mailismus.queue.providers.clustered.cluster import ClusterId, FoundLine, Place

OutYoung = Callable[[SpoolId], int]
"""How many entries of a message are out while young."""

LATER_S = 1.0
"""Seconds after which a cluster is visited again for lines that could not be handed out because of a limit."""


MOST_LIMITS = 16
"""Limits of one cluster; what an earlier one took away is bounded by the newer ones."""


@attrs.frozen
class Limit:
    """Until when lines between two offsets may wait."""

    first: int
    end: float
    latest: Latest


class Cluster:
    """One cluster file."""

    __slots__ = (
        "flushes",
        "id",
        "later",
        "length",
        "limits",
        "live",
        "marked",
        "next_visit",
        "not_before",
        "owed",
        "path",
        "taken",
        "waiting",
    )

    def __init__(self, cluster_id: ClusterId, path: str, length: int | None) -> None:
        self.id = cluster_id
        self.path = path
        self.length = length
        """Bytes that are committed; None: all of the file."""
        self.live: int | None = None
        """Live lines, out or not; None: it was found at the start and not read yet."""
        self.taken: set[int] = set()
        """Offsets of lines that are out."""
        self.owed: set[int] = set()
        """Offsets of lines that are settled durably and not marked yet."""
        self.marked = 0
        """How often lines were marked: what was read before does not tell that they are over, and is read again."""
        self.not_before: dict[int, float] = {}
        """Offsets of lines that were given back, and until when they stay."""
        self.next_visit: float | None = None
        """When it is worth a visit; None: nothing waits in it, as far as is known."""
        self.waiting: Sequence[FoundLine] | None = None
        """Lines of a visit that was cut short by a limit."""
        self.later: float | None = None
        """When it is worth a visit for the lines before those."""
        self.flushes: list[Predicate] = []
        """What shall be visited whatever its time."""
        self.limits: list[Limit] = []
        """Of times that lines of it tell, since the clock was set."""

    def is_hidden(self, offset: int) -> bool:
        """Whether this line is not to be handed out."""
        return offset in self.taken or offset in self.owed

    def heed_limits(self, lines: Iterable[FoundLine]) -> None:
        """Lines that were just read tell the times that count."""
        if self.limits:
            for line in lines:
                entry = line.entry
                for limit in self.limits:
                    if limit.first <= line.offset < limit.end:
                        entry.due_at = min(entry.due_at, limit.latest(self.id.area, entry.attempts, entry.due_at))

    def are_marked(self, offsets: frozenset[int]) -> None:
        """These lines, owed before, say durably that they are over."""
        self.owed -= offsets
        self.waiting = None
        self.marked += 1

    @property
    def is_empty(self) -> bool:
        """No live line is left: the file may go."""
        return self.live == 0


@attrs.frozen
class RestingEntry:
    """An entry that is out, and where its line rests. `message` without entries."""

    message: Message
    entry: Entry
    cluster: Cluster
    offset: int

    @property
    def place(self) -> Place:
        """Of its line, for life."""
        return Place(self.cluster.id, self.offset)


class RestingIndex:
    """All clusters that count."""

    def __init__(self) -> None:
        self.clusters: dict[ClusterId, Cluster] = {}
        self.out: dict[QueueId, RestingEntry] = {}
        self.out_of: dict[SpoolId, int] = {}
        """How many entries of a message are out."""
        self._held_back: dict[SpoolId, tuple[int, set[ClusterId]]] = {}
        """Messages that have as many entries out as they may: down to how many they go before the clusters that hold the
        others are worth a visit."""
        self._held: set[ClusterId] = set()
        """Clusters with lines that were held back because of such a message."""
        self._held_at = 0
        """The least number of entries out that one was held back for."""
        self.woken: set[Area] = set()
        """Areas in which something may be handed out because something came back. For whoever tells those who wait."""
        self._visits: dict[Area, list[tuple[float, int, Cluster]]] = {area: [] for area in Area}
        self._order = itertools.count()

    # visits

    def add(self, cluster: Cluster, next_visit: float | None) -> None:
        """A cluster that counts from now on."""
        self.clusters[cluster.id] = cluster
        if next_visit is not None:
            self.visit(cluster, next_visit)

    def visit(self, cluster: Cluster, at: float) -> None:
        """It is worth a visit at this time, or before."""
        if cluster.next_visit is None or at < cluster.next_visit:
            cluster.next_visit = at
            heapq.heappush(self._visits[cluster.id.area], (at, next(self._order), cluster))

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
        """What waits of the lines from this offset on waits no longer than that."""
        cluster.limits.append(Limit(first, math.inf if cluster.length is None else cluster.length, latest))
        del cluster.limits[:-MOST_LIMITS]
        for offset, until in cluster.not_before.items():
            cluster.not_before[offset] = latest(cluster.id.area, None, until)
        if cluster.next_visit is not None:
            self.read_again(cluster, latest(cluster.id.area, None, cluster.next_visit))

    def read_again(self, cluster: Cluster, at: float) -> None:
        """There is something in it that its last visit did not see."""
        cluster.waiting = None
        self.visit(cluster, at)

    def next_due(self, area: Area) -> float | None:
        """When the next visit of this area is due."""
        visits = self._visits[area]
        while visits:
            at, _, cluster = visits[0]
            if cluster.next_visit == at and self.clusters.get(cluster.id) is cluster:
                return at
            heapq.heappop(visits)
        return None

    def due(self, area: Area, now: float) -> Cluster | None:
        """The cluster of this area to visit first, if any is due."""
        at = self.next_due(area)
        return self._visits[area][0][2] if at is not None and at <= now else None

    # taking

    def choose(
        self, cluster: Cluster, lines: Sequence[FoundLine], now: float, limit: int, per_message: int, out_young: OutYoung
    ) -> list[Message]:
        """Hand out what is due of these lines, and say when the cluster is worth the next visit. Lines that are left
        because of `limit` wait in it."""
        messages: list[Message] = []
        later = cluster.later if lines is cluster.waiting else None
        held_back: int | None = None
        due_at, cluster.next_visit = cluster.next_visit, None
        for position, line in enumerate(lines):
            if line.is_done or cluster.is_hidden(line.offset):
                continue
            entry = line.entry
            not_before = cluster.not_before.get(line.offset, 0.0)
            if not_before > now:
                later = not_before if later is None else min(later, not_before)
                continue
            if entry.due_at > now and not any(wanted(line.message, entry) for wanted in cluster.flushes):
                later = entry.due_at if later is None else min(later, entry.due_at)
                continue
            spool_id = line.message.spool_id
            if self.out_of.get(spool_id, 0) + out_young(spool_id) >= per_message:
                if spool_id in self.out_of:
                    self._held_back.setdefault(spool_id, (per_message // 2, set()))[1].add(cluster.id)
                held_back = position if held_back is None else held_back
                continue
            if not limit:
                first = position if held_back is None else held_back
                cluster.waiting, cluster.later = lines[first:], later
                self._visit_next(cluster, now if due_at is None else min(now, due_at))
                return messages
            limit -= 1
            self._take(cluster, line)
            if messages and messages[-1].spool_id == spool_id:
                messages[-1].entries.append(entry)
            else:
                messages.append(attrs.evolve(line.message, entries=[entry]))
        if held_back is not None:
            self._held_at = min(per_message, self._held_at) if self._held else per_message
            self._held.add(cluster.id)
            # Few clusters are in this state: a message is held back when many of its entries are out.
            cluster.waiting, cluster.later = lines[held_back:], later
            self.visit(cluster, now + LATER_S if later is None else min(later, now + LATER_S))
            return messages
        self._held.discard(cluster.id)
        cluster.waiting = cluster.later = None
        cluster.flushes = []
        if later is not None:
            self.visit(cluster, later)
        return messages

    def _take(self, cluster: Cluster, line: FoundLine) -> None:
        self.hold(RestingEntry(line.message, line.entry, cluster, line.offset))

    def hold(self, resting: RestingEntry) -> None:
        """This entry is out."""
        spool_id = resting.message.spool_id
        resting.cluster.taken.add(resting.offset)
        resting.cluster.not_before.pop(resting.offset, None)
        self.out[QueueId(spool_id, resting.entry.number)] = resting
        self.out_of[spool_id] = self.out_of.get(spool_id, 0) + 1

    def _release(self, queue_id: QueueId) -> RestingEntry | None:
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

    def allow(self, per_message: int) -> None:
        """So many entries of a message may be out now: more, perhaps, than when some were held back."""
        if self._held and per_message > self._held_at:
            held, self._held = self._held, set()
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
                self.stay(resting.cluster, resting.offset, not_before)
                touched.add(resting.cluster.id.area)
        return touched

    def stay(self, cluster: Cluster, offset: int, not_before: float) -> None:
        """This line was given back, and stays until then."""
        cluster.not_before[offset] = not_before
        self.read_again(cluster, not_before)

    def settle(self, queue_id: QueueId) -> RestingEntry | None:
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
