"""A queue made by the real provider and then damaged: what was in it, what a check finds, what a repair leaves."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable

import attrs
from twisted.internet.task import Clock

from mailismus.disk.interface import IDisk
from mailismus.journal.opening import JournalOpener
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.fsck.finding import Done, Finding, Severity
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.fsck.turns import TurnWorker
from mailismus.queue.interface import Area, Entry, Message, Settlement
from mailismus.queue.providers.clustered.fsck.check import checking_of, report_of
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import LiveEntry
from mailismus.queue.providers.clustered.fsck.findings.clusters import Clusters, check_clusters
from mailismus.queue.providers.clustered.fsck.repair import RepairReport
from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue
from mailismus.spool.silo import SILO_COUNT
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses
from tests.durability.crash.tree import Content, Tree, names_of
from tests.fakes.disk import MemoryDisk

_RANDOM = random.Random(7)
"""No two repairs draw the same nonces."""

LARGE = 3000
"""Contents longer than this go to their silo."""

NOW = 1_700_000_000.0

HOST = b"mx.a.example[192.0.2.9]:25"
LATER = Reply(451, b"4.3.0", b"come back later")
NEVER = Reply(550, b"5.1.1", b"no such user")


@attrs.define
class Held:
    """What is in the queue."""

    contents: dict[SpoolId, bytes] = attrs.field(factory=dict)
    entries: dict[QueueId, Area] = attrs.field(factory=dict)


class Stopped:
    """A queue that no server runs on: six messages rest, four never left the journal, as after a kill. `forgets`: the
    journal does not hold any more what was written behind."""

    def __init__(self, *, hardlinks: bool = False, forgets: bool = False) -> None:
        self.harness = ClusteredHarness(queue_settings(largemsgsize=LARGE, hardlinks=hardlinks))
        self.held = Held()
        self.bench = Bench(self.harness, self.harness.open())
        self.harness.settle_down()
        self._put_resting(6)
        if forgets:
            self._forget()
        self._put_young(4)
        self.harness.clock.calls.clear()
        self.harness.disk.kill()

    @property
    def disk(self) -> MemoryDisk:
        """Its disk."""
        return self.harness.disk

    def put(self, recipients: int, size: int) -> SpoolId:
        """A message."""
        count = len(self.held.contents)
        assert self.harness.opened is not None
        spool_ids = self.harness.opened.spool_ids
        expected = spool_ids.epoch << 32 | spool_ids._counter + 1
        trace = b"Received: from a.example ([192.0.2.1])\r\n\tby mx.example with ESMTP id %016X;\r\n\tdate\r\n" % expected
        content = trace + b"Subject: %d\r\n\r\n..\r\n..dot\r\n" % count + b"x%d " % size * (size // 5)
        spool_id = self.bench.put(addresses(recipients), content)
        assert spool_id == expected
        self.held.contents[spool_id] = content
        for number in range(1, recipients + 1):
            self.held.entries[QueueId(spool_id, number)] = Area.INCOMING
        return spool_id

    def _put_resting(self, count: int) -> None:
        """Messages of one and of three recipients, small and large; of each three one recipient is deferred, one bounced."""
        for number in range(count):
            self.put(1 + 2 * (number % 2), 200 if number % 3 else 2 * LARGE)
        messages = self.bench.take(Area.INCOMING)
        settlements = []
        for message in messages:
            for entry in message.entries:
                queue_id = QueueId(message.spool_id, entry.number)
                if entry.number == 1:
                    due_at = self.bench.now() + 900 + 60 * (message.spool_id % 3)
                    settlements.append(Settlement(queue_id, Area.DEFERRED, due_at, 1, LATER, HOST))
                    self.held.entries[queue_id] = Area.DEFERRED
                elif entry.number == 2:
                    settlements.append(Settlement(queue_id, Area.BOUNCES, self.bench.now(), 1, NEVER, HOST))
                    self.held.entries[queue_id] = Area.BOUNCES
        self.bench.commit((), settlements)
        self.bench.queue.give_back(
            [q for m in messages for q in m.queue_ids() if self.held.entries[q] is Area.INCOMING], 0.0
        )
        self.rest()

    def _forget(self) -> None:
        """A clean stop and a start; the segment that was in use before goes."""
        before = self.segment()
        self.bench = Bench(self.harness, self.harness.restart(self.bench.queue))
        self.harness.settle_down()
        del self.disk.names[before]

    def rest(self) -> None:
        """Time for checkpoints and walks."""
        self.harness.clock.pump([0.25] * 60)

    def _put_young(self, count: int) -> None:
        for number in range(count):
            self.put(1 + number % 2, 150)
        self.harness.settle_down()

    # looking for something to damage

    def paths(self, suffix: str, within: str = "/") -> list[str]:
        """Files of this suffix."""
        return sorted(path for path in self.disk.names if path.endswith(suffix) and path.startswith(within))

    def clusters(self, area: Area) -> list[str]:
        """Clusters of an area."""
        return self.paths(".mqc", f"/q/{area.value}/")

    def segment(self) -> str:
        """The segment in use."""
        return max(path for path in self.paths(".mqj") if self.disk.content_of(path)[4096:4100] == b"MQJB")

    def place_of(self, path: str, text: bytes) -> int:
        """Where this is in a file."""
        at = self.disk.content_of(path).find(text)
        assert at >= 0, text
        return at

    # fsck

    def check(self, checking: Checking | None = None) -> list[Finding]:
        """What a look finds. It changes nothing."""
        before = snapshot(self.disk)
        found = list(report_of(checking or checking_of(self.harness.settings, self.disk, self.harness.now())))
        assert snapshot(self.disk) == before
        assert not self.disk.locks
        return found

    def repair(self) -> list[Finding]:
        """What a repair finds and does."""
        found = repair_on(self.disk, self.harness)
        assert not self.disk.locks
        return found

    def start(self) -> Bench:
        """The server."""
        self.harness.clock.calls.clear()
        self.bench = Bench(self.harness, self.harness.open())
        return self.bench

    def look(self) -> dict[QueueId, tuple[Message, Entry]]:
        """What a started server knows; nothing twice."""
        found: dict[QueueId, tuple[Message, Entry]] = {}
        for message, entry in self.bench.search():
            queue_id = QueueId(message.spool_id, entry.number)
            assert queue_id not in found
            found[queue_id] = (message, entry)
        return found

    def drain(self) -> set[QueueId]:
        """Everything is taken, read and delivered; contents must be exact. What was taken, none twice."""
        gone: set[QueueId] = set()
        for area in Area:
            for _ in range(20):
                messages = self.bench.take(area, now=self.harness.now() + 10**6)
                if not messages:
                    break
                for message in messages:
                    if area is not Area.BOUNCES:
                        assert self.bench.read(message.spool_id) == self.held.contents[message.spool_id]
                    assert not gone.intersection(message.queue_ids())
                    gone.update(message.queue_ids())
                self.bench.remove(q for message in messages for q in message.queue_ids())
        self.rest()
        return gone


def repair_on(disk: IDisk, harness: ClusteredHarness) -> list[Finding]:
    """What a repair of the queue on this disk finds and does."""
    return list(RepairReport(harness.settings, disk, _RANDOM.randbytes, harness.now()))


def executor_on(disk: IDisk, loaded: ReplayedQueue | None = None) -> RepairExecutor:
    """The executor of a repair of the queue on this disk. `loaded`: its journal."""
    clock = Clock()
    settings = queue_settings(largemsgsize=LARGE).journal
    opener = JournalOpener(disk, "/q/journal", settings, TurnWorker(clock), clock, _RANDOM.randbytes)
    executor = RepairExecutor(disk, "/q", "/s", opener, NOW)
    executor.loaded = loaded
    return executor


def lines_on(disk: IDisk, loaded: ReplayedQueue) -> list[LiveEntry]:
    """Its live lines."""
    checking = checking_of(queue_settings(largemsgsize=LARGE), disk, NOW)
    found = list(check_clusters(checking, NameCheck(checking), loaded, JournalHistory(loaded.journal)))
    known = found[-1]
    assert isinstance(known, Clusters)
    messages = [entries for silo in range(SILO_COUNT) for _, entries in known.lines.messages(silo)]
    return [line for entries in messages for lines in entries for line in lines]


def snapshot(disk: MemoryDisk) -> tuple[dict[str, bytes], frozenset[str]]:
    """All bytes and names."""
    return {path: bytes(inode.data) for path, inode in disk.names.items()}, frozenset(disk.directories)


def tree_of(disk: MemoryDisk) -> Tree:
    """All that is on a disk."""
    numbers = {id(inode): number for number, inode in enumerate(disk.names.values(), 1)}
    files = {path: numbers[id(inode)] for path, inode in disk.names.items()}
    contents = {numbers[id(inode)]: Content(bytes(inode.data)) for inode in disk.names.values()}
    return Tree(names_of(disk.directories, files), contents)


def disk_of(tree: Tree) -> MemoryDisk:
    """A disk that holds it, all of it durable."""
    disk = MemoryDisk()
    for path in sorted(set(tree.names.directories) - {"/"}):
        disk.make_directory(path)
    made: dict[int, str] = {}
    for path, inode in tree.names.files.items():
        if inode in made:
            disk.link(made[inode], path)
        else:
            disk.create(path).write_at(0, [tree.data_of(path)])
            made[inode] = path
    disk.sync_file_system("/")
    return disk


def kinds(found: Iterable[Finding]) -> list[str]:
    """What was found, notes aside."""
    return sorted(finding.kind for finding in found if finding.severity is not Severity.NOTE)


def unrepaired(found: Iterable[Finding]) -> list[Finding]:
    """What a repair could not do."""
    return [finding for finding in found if finding.done is Done.FAILED]


def clone(stopped: Stopped) -> Stopped:
    """Another one like it."""
    return copy.deepcopy(stopped)
