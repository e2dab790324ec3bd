"""Positions in the log: a record of the next batch, in place of a file of their own. A start looks for the last one.

    round -> record -> barrier of its batch -> segments are free          start: newest segment, batch by batch -> positions

They go as a record of the kind `E` with a text that no epoch has: a start passes it over. For a comparison only: a segment
without such a record leaves the start to the horizon in its header.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import blockingCallFromThread

from mailismus.disk.interface import IDisk, close_read
from mailismus.journal.batch import BLOCK
from mailismus.journal.commit import GroupCommit
from mailismus.journal.frame import FRAME
from mailismus.journal.replay import FoundSegment, survey
from mailismus.queue.providers.log.format.positions import NAME, Positions
from mailismus.queue.providers.log.format.record import read_records
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch

_WORD = b"positions "


class _PositionsItem:
    """The record; `done` fires when it is durable (`journal.commit.IItem`)."""

    may_fail = False

    def __init__(self, positions: Positions) -> None:
        text = _WORD + positions.encode().rstrip(b"\0")
        self.buffers = [FRAME.pack(b"E", b"-", 0, 0, 0, len(text), 0), text]
        self.size_bytes = sum(map(len, self.buffers))
        self.done: Deferred[None] = Deferred()

    def durable(self, segment: int, offset: int) -> None:
        self.done.callback(None)

    def failed(self, error: OSError) -> None:
        raise AssertionError("is written until it is durable") from error


class PositionsInLog:
    """Positions of one log (`IPositionsFile`). `commits` is given before the first write."""

    def __init__(self, reactor: IReactorFromThreads) -> None:
        self._reactor = reactor
        self.commits: GroupCommit | None = None

    def write(self, positions: Positions) -> None:
        """As `IPositionsFile`. Called in a worker's thread."""
        append: Callable[[Positions], Any] = self._append  # a Deferred, which is waited for
        blockingCallFromThread(self._reactor, append, positions)

    def _append(self, positions: Positions) -> Deferred[None]:
        assert self.commits is not None
        item = _PositionsItem(positions)
        self.commits.append(item)
        return item.done


def restore(disk: IDisk, root: str, directory: str) -> None:
    """Find the positions in the log, and write them where a start looks for them. Blocks."""
    journal = survey(disk, directory)
    try:
        for segment in reversed(journal.used):
            block = _last_in(segment)
            if block is not None:
                if disk.exists(path := os.path.join(root, NAME)):
                    disk.unlink(path)
                file = disk.create(path)
                file.write_at(0, [block, block])
                file.close()
                return
    finally:
        for segment in (*journal.used, *journal.others):
            close_read(segment.file)


def _last_in(segment: FoundSegment) -> bytes | None:
    assert segment.header is not None
    reader = BatchReader(Stretch(segment.file, segment.header, BLOCK, segment.size_bytes, 0, 1 << 62))
    found = None
    while (batch := reader.next()) is not None:
        for record in read_records(batch.records, b"E"):
            if record.text.startswith(_WORD):
                found = record.text.removeprefix(_WORD).ljust(BLOCK, b"\0")
    return found
