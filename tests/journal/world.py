"""A journal on a disk in memory, driven without a queue."""

from __future__ import annotations

import itertools

from twisted.internet.task import Clock

from mailismus.disk.presence import Presence
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.pool import SegmentPool
from mailismus.journal.replay import Journal, replay, survey
from mailismus.journal.segment import make_segment
from mailismus.journal.writer import JournalWriter, most_records_size
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ACT_S, ClockWorker

SEGMENT = 1 << 20


class Item:
    """One record of the text given; remembers what became of it."""

    def __init__(self, text: bytes, *, may_fail: bool = True, size: int = 0) -> None:
        self.buffers = [text.ljust(size, b".") + b"\n"]
        self.size_bytes = len(self.buffers[0])
        self.may_fail = may_fail
        self.place: tuple[int, int] | None = None
        self.error: OSError | None = None

    def durable(self, segment: int, offset: int) -> None:
        self.place = (segment, offset)

    def failed(self, error: OSError) -> None:
        self.error = error


class World:
    """Disk, clock, pool, writer and group commit."""

    def __init__(self, free_segments: int = 6, *, has_marks: bool = False) -> None:
        self.clock = Clock()
        self.disk = MemoryDisk()
        self.disk.make_directory("/j")
        random = itertools.count(1)
        worker = ClockWorker(self.clock)
        lock = self.disk.lock("/j/lock")
        assert lock is not None
        presence = Presence({"/j": self.disk.open_directory("/j")}, {"/j/lock": lock})
        self.pool = SegmentPool(self.disk, "/j", SEGMENT, worker, self.clock, presence)
        for n in range(free_segments):
            self.pool.adopt(make_segment(self.disk, "/j", f"ready-{n}.mqj", SEGMENT))
        self.writer = JournalWriter(
            self.disk,
            "/j",
            self.pool.take,
            lambda size: next(random).to_bytes(size, "big"),
            last_number=0,
            last_sequence=0,
            presence=presence,
            has_marks=has_marks,
        )
        self.said_again: list[IItem] = []
        self.batches = 0
        self.commit = GroupCommit(
            self.writer, worker, self.clock, most_records_size(SEGMENT), self._on_batch, lambda: self.said_again
        )

    def _on_batch(self) -> None:
        self.batches += 1

    def append(self, *items: Item) -> None:
        for item in items:
            self.commit.append(item)

    def turns(self, count: int = 10) -> None:
        for _ in range(count):
            self.clock.advance(ACT_S)

    def found(self) -> tuple[Journal, list[bytes]]:
        """What a replay finds now: the journal, and every text that counts, in order."""
        journal = survey(self.disk, "/j")
        texts = [text.rstrip(b".") for _, batch in replay(journal) for text in batch.records.split(b"\n")[:-1]]
        return journal, texts

    def fail(self, act: str, times: int = 1, error: int = 5) -> None:
        """The next so many acts of this kind fail."""
        left = [times]

        def fault(name: str, path: str) -> OSError | None:
            if name == act and left[0]:
                left[0] -= 1
                return OSError(error, "injected")
            return None

        self.disk.fault = fault
