"""Visits of clusters under random acts: every take ends, visits a cluster once at most, and in the end nothing is left."""

from __future__ import annotations

from typing import TypeVar

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from twisted.python.failure import Failure

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import DONE_MARK, ClusterId, FoundLine, header_line, read_lines
from mailismus.queue.providers.clustered.format.slots import slot_of
from mailismus.queue.providers.clustered.index import waiting_lines as waiting
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry, ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.read.due_scan import DueScan
from tests.fakes.disk import MemoryDisk
from tests.fakes.shares import Most
from tests.fakes.worker import MemoryWorker

T = TypeVar("T")

START = 1_700_000_000.0
AREA = Area.DEFERRED
SENDERS = [b"a@b.example", b"a@b.example", b"c@d.example"]
MESSAGES = [
    Message(SpoolId(number), sender, b"192.0.2.1", False, START, 10, 100, []) for number, sender in enumerate(SENDERS, 1)
]
STUCK = 40
"""Visits in one take after which it is given up; there are never as many clusters."""


class CountingIndex(ClusterIndex):
    """Counts the visits of a take, and ends one that never would."""

    visited: list[Cluster]

    def hand_out(self, cluster: Cluster, *args: object) -> list[Message]:
        self.visited.append(cluster)
        assert len(self.visited) < STUCK, "the take does not end"
        return super().hand_out(cluster, *args)  # type: ignore[arg-type]  # as they came


@attrs.define
class Known:
    """What the model knows of an entry that is not over: from when on it should be taken, and may be."""

    at: float
    earliest: float
    is_out: bool = False
    is_given_back: bool = False


@attrs.define
class Taking:
    """A take under way."""

    now: float
    limit: int
    most: int
    is_disturbed: bool = False


class VisitsMachine(RuleBasedStateMachine):
    """The acts."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.disk = MemoryDisk()
        self.disk.make_directory("/q")
        self.worker = MemoryWorker(is_prompt=True, holds_results=True)
        self.index = CountingIndex()
        self.index.visited = []
        self.young = Memtable()
        reader = ClusterReader(self.worker, self.index)
        self.visits = DueScan(self.disk, "/q", self.worker, reader, self.young, self.index)
        self.known: dict[QueueId, Known] = {}
        self.numbers = 0
        self.taking: Taking | None = None
        self.taken: list[list[Message]] = []
        self.failed: list[Failure] = []
        self.most_later = waiting.MAX_LATER

    @initialize(most=st.sampled_from([0, 3, 10_000]))
    def begin(self, most: int) -> None:
        waiting.MAX_LATER = most

    def teardown(self) -> None:
        try:
            self._drain()
        finally:
            waiting.MAX_LATER = self.most_later

    def _drain(self) -> None:
        """All that is left can be taken, each entry once."""
        self.end_take()
        self.schedule_read()
        self.index.give_back([queue_id for queue_id, known in self.known.items() if known.is_out], self.now)
        for known in self.known.values():
            known.is_out = False
        for _ in range(200):
            if not self.known:
                break
            self.now += 61.0
            self.take(7, 3)
            self.end_take()
            self.settle_all()
            self.mark()
        assert not self.known
        assert self.index.later.count == 0 or any(cluster.waiting for cluster in self.index.clusters.values())

    # what happens in the queue

    @rule(message=st.sampled_from(MESSAGES), waits=st.lists(st.sampled_from([0, 0.5, 1, 1.5, 20, 50, 90, 4000]), max_size=4))
    def append(self, message: Message, waits: list[float]) -> None:
        """A checkpoint moves entries of one message, each to the cluster of its slot."""
        for wait_s in waits:
            self.numbers += 1
            entry = Entry(self.numbers, b"r@d.example", AREA, self.now + wait_s, 1)
            cluster_id = ClusterId(AREA, slot_of(entry.due_at, self.now), 1, 1)
            cluster = self.index.clusters.get(cluster_id)
            if cluster is None:
                cluster = Cluster(cluster_id, f"/q/{cluster_id.slot}", 0)
                cluster.live = 0
                self.disk.create(cluster.path)
                self.index.add(cluster, None)
                self._append(cluster, header_line(cluster_id))
            assert cluster.length is not None
            assert cluster.live is not None
            offset = cluster.length
            self._append(cluster, format_lines(message, [entry]))
            cluster.live += 1
            self.index.arrive(cluster, FoundLine(offset, False, message, entry), self.now)
            self.known[QueueId(message.spool_id, entry.number)] = Known(entry.due_at, entry.due_at)
        self._disturb()

    def _append(self, cluster: Cluster, data: bytes) -> None:
        assert cluster.length is not None
        self.disk.open(cluster.path).write_at(cluster.length, [data])
        cluster.length += len(data)

    @rule()
    def mark(self) -> None:
        """A checkpoint marks what is over."""
        for cluster in self.index.clusters.values():
            offsets = frozenset(cluster.owed)
            file = self.disk.open(cluster.path)
            for offset in offsets:
                file.write_at(offset, [DONE_MARK])
            cluster.mark_finished(offsets)

    @rule()
    def flush(self) -> None:
        """All that waits is due now, but for what was given back."""
        for cluster in self.index.clusters.values():
            cluster.flush(lambda message, entry: True)
            self.index.schedule_read(cluster, self.now)
        for known in self.known.values():
            if not known.is_out and not known.is_given_back:
                known.at = min(known.at, self.now)
                known.earliest = min(known.earliest, self.now if self.taking is None else self.taking.now)
        self._disturb()

    @rule()
    def room_again(self) -> None:
        """Senders are asked about again: their lines come with the next take."""
        areas = self.index.room_again()
        assert areas <= {AREA}
        assert not areas or self.index.is_due(AREA, self.now)
        self._disturb()

    @rule()
    def clusters_can_not_be_read(self) -> None:
        """Until `schedule_read`."""
        self.disk.fault = lambda act, path: OSError(5, "injected") if act == "read" else None

    @rule()
    def schedule_read(self) -> None:
        """They can."""
        self.disk.fault = None

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 1.0, 20.0, 61.0]))
    def pass_time(self, seconds: float) -> None:
        """It never stands still in the real world."""
        self.now += seconds

    # takes and their ends

    @rule(limit=st.integers(1, 6), most=st.sampled_from([0, 1, 2, 3, 100]))
    def take(self, limit: int, most: int) -> None:
        """Begins, if none is under way; ends at once where nothing is to be read."""
        if self.taking is not None:
            return
        self.taking = Taking(self.now, limit, most)
        self.index.visited = []
        self.visits.take(AREA, limit, self.now, Most(most)).addCallbacks(self.taken.append, self.failed.append)
        self._look()

    @rule()
    def end_take(self) -> None:
        """What is being read has been."""
        while self.worker.results:
            self.worker.release()
            self._look()
        assert self.taking is None, "the take never ends"

    def _look(self) -> None:
        """Whether the take has ended, and well."""
        for failure in self.failed:
            failure.raiseException()
        if self.taken:
            self._judge(self.taken.pop())

    def _judge(self, messages: list[Message]) -> None:
        taking, self.taking = self.taking, None
        assert taking is not None
        assert len({cluster.id for cluster in self.index.visited}) == len(self.index.visited), "visited twice"
        count = 0
        of_sender = dict.fromkeys(SENDERS, 0)
        for message in messages:
            of_sender[message.sender] += len(message.entries)
            for entry in message.entries:
                known = self.known[QueueId(message.spool_id, entry.number)]
                assert not known.is_out
                assert known.earliest <= taking.now + 0.001
                known.is_out, known.is_given_back = True, False
                count += 1
        assert count <= taking.limit
        assert max(of_sender.values()) <= taking.most
        next_due = self.index.next_due(AREA)
        if not taking.is_disturbed:
            assert count == taking.limit or next_due is None or next_due > taking.now, "a cluster is due again at once"
        if self.disk.fault is None:
            waits = [known.at for known in self.known.values() if not known.is_out]
            latest = max(taking.now + 60.0, min(waits, default=0.0))  # a cluster that could not be read waits so long
            assert not waits or (next_due is not None and next_due <= latest + 1.001), "nobody would look in time"

    @rule(data=st.data(), fate=st.sampled_from(["settle", "give back"]), wait_s=st.sampled_from([0.0, 0.0, 1.0, 70.0]))
    def come_back(self, data: st.DataObject, fate: str, wait_s: float) -> None:
        """Some that are out are settled, or given back."""
        out = sorted(queue_id for queue_id, known in self.known.items() if known.is_out)
        if not out:
            return
        chosen = data.draw(st.lists(st.sampled_from(out), unique=True, max_size=4))
        self._disturb()
        if fate == "settle":
            self._settle(chosen)
        else:
            self.index.give_back(chosen, self.now + wait_s)
            for queue_id in chosen:
                self.known[queue_id] = Known(self.now + wait_s, self.now + wait_s, is_given_back=True)

    def settle_all(self) -> None:
        self._settle([queue_id for queue_id, known in self.known.items() if known.is_out])

    def _settle(self, queue_ids: list[QueueId]) -> None:
        for queue_id in queue_ids:
            assert self.index.settle(queue_id) is not None
            del self.known[queue_id]

    @rule(data=st.data())
    def settle_what_nobody_took(self, data: st.DataObject) -> None:
        """As an administrator may: the line is out, and over, without a take."""
        if self.taking is not None or self.disk.fault is not None or not self.known:
            return
        self.settle_untaken(data.draw(st.sampled_from(sorted(self.known))))

    def settle_untaken(self, queue_id: QueueId) -> None:
        for cluster in self.index.clusters.values():
            lines = self.disk.open(cluster.path).read_at(0, 1 << 20)
            for found in waiting_lines(lines, cluster):
                if QueueId(found.message.spool_id, found.entry.number) == queue_id and not cluster.is_hidden(found.offset):
                    self.index.hold(ClusteredEntry(found.message, found.entry, cluster, found.offset))
        self._settle([queue_id])

    def _disturb(self) -> None:
        if self.taking is not None:
            self.taking.is_disturbed = True

    @invariant()
    def the_counts_agree(self) -> None:
        """Live lines, and lines in memory before they are due."""
        for cluster in self.index.clusters.values():
            here = [out for out in self.index.out.values() if out.cluster is cluster]
            assert cluster.taken == {out.offset for out in here}
        assert sum(cluster.live or 0 for cluster in self.index.clusters.values()) == len(self.known)
        assert self.index.later.count >= 0


def waiting_lines(data: bytes, cluster: Cluster) -> list[FoundLine]:
    """Live lines of a cluster's bytes."""
    return [found for found in read_lines(data, AREA, cluster.length) if isinstance(found, FoundLine) and not found.is_done]
