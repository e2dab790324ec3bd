"""Checkpoints: they keep the journal short.

A checkpoint moves the horizon over the oldest segments, so that these can be used again. What still lives in the oldest
one is said again at the journal's head first, slice by slice, between everybody's batches. The record `checkpoint` goes
through the journal like any other and is the commit instant: a segment is free only when a record whose horizon lies
behind its last batch is durable.

Settled records need no saying again: when the horizon passes one, it has passed the message that it speaks of.

A message with settles that are asked for and not yet durable is not said again: its settle stands ahead of it in the
journal, and what is said later wins.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.pool import SegmentPool
from mailismus.journal.segment import Segment
from mailismus.journal.writer import JournalWriter, most_records_size
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Entry
from mailismus.queue.providers.clustered.items import CheckpointItem, say_again
from mailismus.queue.providers.clustered.line import lines_size
from mailismus.queue.providers.clustered.record import checkpoint_record
from mailismus.queue.providers.clustered.young import YoungMessage

SLICE_BYTES = 1 << 20
"""Bytes said again at once: a client's barrier carries no more of it than this."""


def journal_bytes_of(young: YoungMessage) -> int:
    """What a live message takes in the journal, about."""
    content = 0 if young.is_in_silo else young.message.size_bytes
    return content + lines_size(young.message, young.entries.values())


class Checkpoints:
    """Knows what lives in which segment, and makes old segments free."""

    _log = Logger()

    def __init__(
        self, writer: JournalWriter, commit: GroupCommit, pool: SegmentPool, worker: IWorker, epoch: Callable[[], int]
    ) -> None:
        self._writer = writer
        self._commit = commit
        self._pool = pool
        self._worker = worker
        self._epoch = epoch
        self._most = most_records_size(pool.size_bytes)
        self._live: dict[int, dict[SpoolId, YoungMessage]] = {}
        self.live_bytes = 0
        """Bytes of live records in the journal, about."""
        self._sick: set[int] = set()
        self._unreadable: set[int] = set()
        self._is_moving = False
        self._is_recording = False
        self.checkpoints = 0
        """Checkpoints that became durable."""
        self.said_again = 0
        """Messages said again."""

    # what lives where

    def lives(self, young: YoungMessage, segment: int) -> None:
        """The newest record of the message lies in this segment."""
        young.segment = segment
        here = self._live.get(segment)
        if here is None:
            here = self._live[segment] = {}
        here[young.message.spool_id] = young
        young.journal_bytes = journal_bytes_of(young)
        self.live_bytes += young.journal_bytes

    def changes(self, young: YoungMessage, entry: Entry, successor: Entry) -> None:
        """An entry of the message goes on as another, whose line may be longer: of a reply, say."""
        more = lines_size(young.message, (successor,)) - lines_size(young.message, (entry,))
        young.journal_bytes += more
        self.live_bytes += more

    def gone(self, young: YoungMessage) -> None:
        """The message does not live in its segment any more."""
        here = self._live.get(young.segment)
        if here is not None and here.pop(young.message.spool_id, None) is not None:
            self.live_bytes -= young.journal_bytes

    def is_sick(self, segment: int) -> None:
        """A barrier of this segment failed: it goes as soon as it can, and is not used again."""
        self._sick.add(segment)

    # making segments free

    @property
    def used_bytes(self) -> int:
        """Bytes of the segments in use."""
        return len(self._writer.segments) * self._pool.size_bytes

    def look(self) -> None:
        """Something became durable: is there something to do?"""
        self._pool.top_up()
        numbers = sorted(self._writer.segments.copy())
        if len(numbers) < 2 or self._is_recording:
            return
        passed = 0
        for number in numbers[:-1]:
            if self._live.get(number):
                break
            passed = number
        if passed:
            self._record(self._writer.segments[passed].last_sequence)
        elif self._is_worth_moving(numbers):
            self._move(numbers[0])

    def _is_worth_moving(self, numbers: list[int]) -> bool:
        """Half of the journal is waste, or a sick segment holds something."""
        if numbers[0] in self._unreadable:
            return False
        if any(number in self._sick for number in numbers[:-1]):
            return True
        return len(numbers) > 4 and self.used_bytes > 2 * self.live_bytes + 2 * self._pool.size_bytes

    def _record(self, horizon: int) -> None:
        self._is_recording = True
        record = checkpoint_record(horizon, self._epoch())
        self._commit.append(CheckpointItem(record, lambda: self._recorded(horizon)))

    def _recorded(self, horizon: int) -> None:
        self._is_recording = False
        self.checkpoints += 1
        writer = self._writer
        writer.horizon = horizon
        for number, segment in sorted(writer.segments.copy().items()):
            if segment.last_sequence <= horizon and segment is not writer.current:
                del writer.segments[number]
                self._live.pop(number, None)
                if number in self._sick:
                    self._sick.discard(number)
                    self._pool.remove(segment)
                else:
                    self._pool.adopt(segment)
        self._pool.top_up()

    def _move(self, number: int) -> None:
        """Say a slice of what lives in this segment again."""
        if self._is_moving:
            return
        chosen: list[YoungMessage] = []
        size = 0
        for young in self._live[number].values():
            if not young.pending:
                chosen.append(young)
                size += journal_bytes_of(young)
                if size >= SLICE_BYTES:
                    break
        if not chosen:
            return  # all of it has settles under way: their batch looks again
        self._is_moving = True
        segment = self._writer.segments[number]
        self._worker.run(lambda: _read_contents(segment, chosen)).addCallbacks(
            self._say_again, self._not_read, callbackArgs=(chosen, number), errbackArgs=(number,)
        ).addErrback(self._broken)

    def _say_again(self, contents: list[bytes | None], chosen: list[YoungMessage], number: int) -> None:
        items: list[IItem] = []
        for young, content in zip(chosen, contents, strict=True):
            if young.segment == number and not young.pending and young.entries:
                items += say_again(young, content, self._most, self.moved)
        if not items:
            self._is_moving = False
            self.look()
            return
        for item in items:
            self._commit.append(item)
        done: Deferred[None] = Deferred()
        done.addCallback(lambda _: self._slice_is_done())
        self._commit.append(
            CheckpointItem(checkpoint_record(self._writer.horizon, self._epoch()), lambda: done.callback(None))
        )

    def moved(self, young: YoungMessage, segment: int, content_offset: int) -> None:
        """A message has been said again, there."""
        self.said_again += 1
        if not young.entries:
            return
        self.gone(young)
        young.offset = content_offset
        self.lives(young, segment)

    def _slice_is_done(self) -> None:
        self._is_moving = False

    def _not_read(self, failure: Failure, number: int) -> None:
        self._is_moving = False
        if not isinstance(failure.value, OSError):
            failure.raiseException()
        self._unreadable.add(number)
        self._log.error("Journal segment {number} can't be read: {error}", number=number, error=failure.value)

    def _broken(self, failure: Failure) -> None:
        self._log.failure("A checkpoint failed", failure)


def _read_contents(segment: Segment, chosen: list[YoungMessage]) -> list[bytes | None]:
    """The contents of messages that live in this segment; None: in its silo."""
    return [
        None
        if young.is_in_silo
        else young.content
        if young.content is not None
        else segment.file.read_at(young.offset, young.message.size_bytes)
        for young in chosen
    ]
