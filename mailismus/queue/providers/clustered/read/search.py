"""Search and counts of the queue. They change and lock nothing, and read one cluster at a time, in a worker. They pause for
mail; a count in another process disturbs mail less (`count_plan`). One message is looked for by the bytes of its id: of
other lines nothing is parsed, and several clusters are read at a time.

A search goes over the memtable first, then over the clusters that existed when it began. So no entry is given twice: an
entry that is moved meanwhile lies in a cluster that is passed over; an entry of a cluster that is retried meanwhile is in
the part of the memtable that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import attrs

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Entry, Filter, Message, Page, Summary
from mailismus.queue.pages import CLAIM_MESSAGES, claim_page, count_entries, split_page
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry, ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.read.cluster_file import read_live
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.queue.providers.clustered.read.count_plan import CountingPlan
from mailismus.queue.providers.clustered.read.due_scan import is_wanted
from mailismus.queue.providers.clustered.read.planned_count import count_cluster
from mailismus.queue.sums import summary_of
from mailismus.queue.throttle import WorkThrottle

PAGE_CLUSTERS = 10
"""Clusters that are read for one page at most: one in which little matches comes all the same, and a client that has left is
noticed."""
CLUSTERS_OF_ID = 32
"""Clusters in which one message is looked for in one turn of the worker, and for one page of a claim: some milliseconds of
processor time."""
SLICE_S = 0.004
"""Processor seconds of a count between two pauses, in pieces of a cluster."""


@attrs.frozen
class Cursor:
    """Position of a search: after an entry of the memtable, or after a cluster."""

    newest: int
    """Number of the newest checkpoint when the search began."""
    lengths: dict[ClusterId, int]
    """Lengths of clusters then. Lines behind them were in the memtable, and have been searched."""
    newest_id: SpoolId
    """The highest spool id in the memtable then: a search does not run after new mail."""
    in_memtable: QueueId | None = None
    cluster: ClusterId | None = None
    """The last one that was read. It is not read again for each page that it fills."""
    rest: tuple[Message, ...] = ()
    """What was found there beyond the page."""


def cluster_order(cluster_id: ClusterId) -> tuple[str, str, int, int]:
    """Return the sort key of clusters in a search."""
    return cluster_id.area.value, cluster_id.slot, cluster_id.checkpoint, cluster_id.number


class QueueSearch:
    """Searches and counts memtable and clusters. `root`: the queue's directory; `newest`: the number of the newest durable
    checkpoint."""

    def __init__(
        self,
        disk: IDisk,
        root: str,
        reader: ClusterReader,
        memtable: Memtable,
        cluster_index: ClusterIndex,
        newest: Callable[[], int],
        throttle: WorkThrottle,
    ) -> None:
        self._disk = disk
        self._root = root
        self._reader = reader
        self._memtable = memtable
        self._cluster_index = cluster_index
        self._newest = newest
        self._throttle = throttle

    def plan(self, refusing: str = "") -> CountingPlan:
        """Return the plan of a count of the present entries. `refusing`: see `Summary`."""
        return CountingPlan(self._root, self._memtable, self._cluster_index, self._newest(), refusing)

    async def summarize(self, refusing: str = "") -> Summary:
        """Return counts of every area. `refusing`: see `Summary`."""
        plan = self.plan()
        sums, gaps = plan.sums, Gaps()
        counted_s = 0.0
        for cluster in plan.clusters():
            act = self._throttle.metered(partial(count_cluster, self._disk, cluster))
            read = await self._reader.read(cluster.id, cluster.path, act)
            if isinstance(read, Unread):
                gaps.add(read.gaps)
                continue
            (_, found), used_s = read
            sums[cluster.id.area].add(found)
            counted_s += used_s
            if counted_s >= SLICE_S:
                await self._throttle.rest(counted_s)
                counted_s = 0.0
        return summary_of(sums, gaps.all(), refusing)

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """Return at most `limit` matching entries after the cursor."""
        cursor = after if isinstance(after, Cursor) else self._begin()
        messages: list[Message] = list(cursor.rest)
        gaps = Gaps()
        room = limit - count_entries(messages)
        if cursor.cluster is None:
            for journaled in self._candidates(wanted, cursor.in_memtable, cursor.newest_id):
                found = _matching(journaled, wanted, cursor.in_memtable)
                if found:
                    messages.append(attrs.evolve(journaled.message, entries=found[:room]))
                    if len(found) >= room:
                        last = QueueId(journaled.message.spool_id, found[room - 1].number)
                        return Page(tuple(messages), attrs.evolve(cursor, in_memtable=last))
                    room -= len(found)
        read, groups = cursor.cluster, self._groups(wanted, cursor)
        left = PAGE_CLUSTERS
        while room > 0 and left > 0:
            group = next(groups, ())
            if not group:
                return Page(tuple(messages), None, gaps.all())
            read_now, used_s = await self._read_live(group, wanted.spool_id)
            for cluster, lines in zip(group, read_now, strict=True):
                if isinstance(lines, Unread):
                    gaps.add(lines.gaps)
                else:
                    room -= _add_matching(messages, cluster, lines, wanted, cursor)
            read, left = group[-1].id, left - 1
            await self._throttle.rest(used_s)
        page, rest = split_page(messages, limit)
        return Page(tuple(page), attrs.evolve(cursor, cluster=read, rest=tuple(rest)), gaps.all())

    async def claim(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """As `IQueue.claim`. Of a cluster that is read all that matches is handed out at once."""
        cursor = after if isinstance(after, Cursor) else self._begin()
        if cursor.cluster is None:
            page = self._claim_in_memtable(wanted, cursor, limit)
            if page is not None:
                return page
        messages: list[Message] = []
        out: list[QueueId] = []
        gaps = Gaps()
        looked = 0
        for group in self._groups(wanted, cursor):
            read_now, _ = await self._read_live(group, wanted.spool_id)
            for cluster, lines in zip(group, read_now, strict=True):
                if isinstance(lines, Unread):
                    gaps.add(lines.gaps)
                else:
                    self._claim_lines(cluster, lines, wanted, cursor, messages, out)
                    looked += len(lines)
            if looked >= limit or wanted.spool_id is not None:
                return Page(tuple(messages), attrs.evolve(cursor, cluster=group[-1].id), gaps.all(), tuple(out))
        return Page(tuple(messages), None, gaps.all(), tuple(out))

    def _claim_in_memtable(self, wanted: Filter, cursor: Cursor, limit: int) -> Page | None:
        """Return the next page of the memtable; None: nothing that matches is left there."""
        found: list[Message] = []
        last: QueueId | None = None
        # From 0 on: the message at the cursor comes again, and is not counted twice.
        for looked, journaled in enumerate(self._candidates(wanted, cursor.in_memtable, cursor.newest_id)):
            message, entries = journaled.message, _matching(journaled, wanted, cursor.in_memtable)[:limit]
            if entries:
                found.append(attrs.evolve(message, entries=entries))
            last = QueueId(message.spool_id, entries[-1].number if entries else message.recipient_count)
            limit -= len(entries)
            if limit <= 0 or looked >= CLAIM_MESSAGES:
                break
        else:
            if not found:
                return None
        return claim_page(Page(tuple(found), attrs.evolve(cursor, in_memtable=last)), wanted, self._memtable)

    def _claim_lines(
        self,
        cluster: Cluster,
        lines: Sequence[FoundLine],
        wanted: Filter,
        cursor: Cursor,
        messages: list[Message],
        out: list[QueueId],
    ) -> None:
        """Hand out the matching lines of a cluster that was just read. Add them to `messages`, and those that were out to
        `out`."""
        if self._cluster_index.clusters.get(cluster.id) is not cluster:
            return
        for line in lines:
            if line.offset >= cursor.lengths.get(cluster.id, line.offset + 1):
                break
            if line.offset in cluster.owed or not is_wanted(wanted, line.message, line.entry):
                continue
            if line.offset in cluster.taken:
                out.append(QueueId(line.message.spool_id, line.entry.number))
                continue
            self._cluster_index.hold(ClusteredEntry(line.message, line.entry, cluster, line.offset))
            if messages and messages[-1].spool_id == line.message.spool_id:
                messages[-1].entries.append(line.entry)
            else:
                messages.append(attrs.evolve(line.message, entries=[line.entry]))

    def _begin(self) -> Cursor:
        return Cursor(self._newest(), self._lengths(), self._memtable.newest_id())

    def _lengths(self) -> dict[ClusterId, int]:
        return {c.id: c.length for c in self._cluster_index.clusters.values() if c.length is not None}

    def _clusters(self, behind: ClusterId | None, newest: int) -> Iterator[Cluster]:
        """Yield clusters of checkpoints up to `newest`, in order, those behind `behind`."""
        for cluster_id in sorted(self._cluster_index.clusters, key=cluster_order):
            cluster = self._cluster_index.clusters.get(cluster_id)
            if cluster is None or cluster_id.checkpoint > newest:
                continue
            if behind is None or cluster_order(cluster_id) > cluster_order(behind):
                yield cluster

    def _groups(self, wanted: Filter, cursor: Cursor) -> Iterator[Sequence[Cluster]]:
        """Yield the clusters of the filter's area behind the cursor, as many at a time as are read in one turn."""
        group: list[Cluster] = []
        for cluster in self._clusters(cursor.cluster, cursor.newest):
            if wanted.area in (None, cluster.id.area):
                group.append(cluster)
            if len(group) >= (1 if wanted.spool_id is None else CLUSTERS_OF_ID):
                yield group
                group = []
        if group:
            yield group

    async def live_lines(self, cluster: Cluster) -> Sequence[FoundLine] | Unread:
        """Return the live lines of a cluster, out or not."""
        ((lines,), _) = await self._read_live((cluster,), None)
        return lines

    async def _read_live(
        self, clusters: Sequence[Cluster], spool_id: SpoolId | None
    ) -> tuple[list[Sequence[FoundLine] | Unread], float]:
        """Return the live lines of each of these clusters, or (`spool_id`) those of one message, and the processor seconds
        that it took."""
        acts = [
            self._throttle.metered(partial(read_live, self._disk, one.path, one.id.area, one.length, spool_id))
            for one in clusters
        ]
        with ExitStack() as reading:
            marked = [reading.enter_context(cluster.reading()) for cluster in clusters]
            read = await self._reader.read_each(clusters, acts)
        found: list[Sequence[FoundLine] | Unread] = []
        all_used_s = 0.0
        for cluster, marks, result in zip(clusters, marked, read, strict=True):
            if isinstance(result, Unread):
                found.append(result)
                continue
            lines, used_s = result
            all_used_s += used_s
            cluster.apply_limits(lines)
            found.append([line for line in lines if line.offset not in cluster.owed and line.offset not in marks])
        return found, all_used_s

    def _candidates(self, wanted: Filter, after: QueueId | None, last: SpoolId) -> Iterator[JournaledMessage]:
        if wanted.spool_id is None:
            yield from self._memtable.messages_between(after.spool_id if after is not None else SpoolId(0), last)
        elif after is None or wanted.spool_id >= after.spool_id:
            journaled = self._memtable.messages.get(wanted.spool_id)
            if journaled is not None:
                yield journaled


def _add_matching(
    messages: list[Message], cluster: Cluster, lines: Sequence[FoundLine], wanted: Filter, cursor: Cursor
) -> int:
    """Add the matching lines of a cluster to what was found. Return how many."""
    count = 0
    for line in lines:
        if line.offset >= cursor.lengths.get(cluster.id, line.offset + 1):
            break
        if not is_wanted(wanted, line.message, line.entry):
            continue
        if messages and messages[-1].spool_id == line.message.spool_id:
            messages[-1].entries.append(line.entry)
        else:
            messages.append(attrs.evolve(line.message, entries=[line.entry]))
        count += 1
    return count


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
