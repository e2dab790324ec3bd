"""Looking at the queue: counts and pages. Moves, seals and locks nothing; a cluster at a time, in a worker. A count pauses
for mail; it costs mail less where another process makes it (`plan`).

A search goes over the young first, then over the clusters that were there when it began. So nothing is given twice: what
was young and is moved lies in a cluster that is passed over, what rested and is retried is young behind the search's back.
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
from mailismus.queue.providers.clustered.read.counting import summary_of
from mailismus.queue.providers.clustered.read.due_scan import is_wanted, read_file
from mailismus.queue.providers.clustered.read.planned_count import count_cluster

COUNTED_BYTES = 1_000_000
"""Of clusters that a count reads between two pauses: some 4 ms of work, in pieces of a cluster."""
PAUSE_S = 0.030


@attrs.frozen
class Cursor:
    """Where a search stands: behind a young entry, or behind a line of a cluster."""

    newest: int
    """Number of the newest checkpoint when the search began."""
    lengths: dict[ClusterId, int]
    """How long clusters were then: what grew behind that was young, and has been looked at."""
    young: QueueId | None
    cluster: ClusterId | None = None
    offset: int = -1


def cluster_order(cluster_id: ClusterId) -> tuple[str, str, int, int]:
    """The order in which clusters are looked at."""
    return cluster_id.area.value, cluster_id.slot, cluster_id.checkpoint, cluster_id.number


class QueueSearch:
    """Looks at young and resting entries. `root`: the queue's directory; `newest`: the number of the newest checkpoint that
    counts; `clock`: none where nothing else is to be done, and nobody waits."""

    def __init__(
        self,
        disk: IDisk,
        root: str,
        reader: ClusterReader,
        young: Memtable,
        resting: ClusterIndex,
        newest: Callable[[], int],
        clock: IReactorTime | None = None,
    ) -> None:
        self._disk = disk
        self._root = root
        self._reader = reader
        self._young = young
        self._resting = resting
        self._newest = newest
        self._clock = clock

    def plan(self, refusing: str = "") -> CountingPlan:
        """What is to be counted now. `refusing`: see `Summary`."""
        return CountingPlan(self._root, self._young, self._resting, self._newest(), refusing)

    async def summarize(self, refusing: str = "") -> Summary:
        """Counts of every area. `refusing`: see `Summary`."""
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
        """At most `limit` matching entries behind the cursor."""
        cursor = after if isinstance(after, Cursor) else Cursor(self._newest(), self._lengths(), None)
        messages: list[Message] = []
        gaps = Gaps()
        room = limit
        if cursor.cluster is None:
            for young in self._candidates(wanted, cursor.young):
                found = _matching(young, wanted, cursor.young)
                if found:
                    messages.append(attrs.evolve(young.message, entries=found[:room]))
                    if len(found) >= room:
                        last = QueueId(young.message.spool_id, found[room - 1].number)
                        return Page(tuple(messages), attrs.evolve(cursor, young=last))
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
                    at = attrs.evolve(cursor, young=None, cluster=cluster.id, offset=line.offset)
                    return Page(tuple(messages), at, gaps.all())
        return Page(tuple(messages), None, gaps.all())

    def _lengths(self) -> dict[ClusterId, int]:
        return {c.id: c.length for c in self._resting.clusters.values() if c.length is not None}

    def _clusters(self, first: ClusterId | None, newest: int) -> Iterator[Cluster]:
        """Clusters of checkpoints up to `newest`, in order, from `first` on."""
        for cluster_id in sorted(self._resting.clusters, key=cluster_order):
            cluster = self._resting.clusters.get(cluster_id)
            if cluster is None or cluster_id.checkpoint > newest:
                continue
            if first is None or cluster_order(cluster_id) >= cluster_order(first):
                yield cluster

    async def live_lines(self, cluster: Cluster) -> Sequence[FoundLine] | Unread:
        """The live lines of a cluster, out or not."""
        act = partial(read_live, self._disk, cluster.path, cluster.id.area, cluster.length)
        with cluster.reading() as marked:
            lines = await self._reader.read(cluster.id, cluster.path, act)
        if isinstance(lines, Unread):
            return lines
        cluster.heed_limits(lines)
        return [line for line in lines if line.offset not in cluster.owed and line.offset not in marked]

    def _candidates(self, wanted: Filter, after: QueueId | None) -> Iterator[JournaledMessage]:
        if wanted.spool_id is None:
            yield from self._young.walk(after.spool_id if after is not None else SpoolId(0))
        elif after is None or wanted.spool_id >= after.spool_id:
            young = self._young.messages.get(wanted.spool_id)
            if young is not None:
                yield young


def read_live(disk: IDisk, path: str, area: Area, length: int | None) -> list[FoundLine]:
    """The lines of a cluster file whose state byte says live. Raises OSError."""
    return [
        found
        for found in read_lines(read_file(disk, path, length), area, length)
        if isinstance(found, FoundLine) and not found.is_done
    ]


def _pause(clock: IReactorTime, seconds: float) -> Deferred[None]:
    done: Deferred[None] = Deferred()
    clock.callLater(seconds, done.callback, None)
    return done


def _matching(young: JournaledMessage, wanted: Filter, after: QueueId | None) -> list[Entry]:
    """Copies: what is listed does not change under whoever prints it."""
    first = after.number + 1 if after is not None and after.spool_id == young.message.spool_id else 1
    return [
        attrs.evolve(entry)
        for number, entry in sorted(young.entries.items())
        if number >= first and (wanted.area is None or entry.area is wanted.area) and wanted.matches(young.message, entry)
    ]
