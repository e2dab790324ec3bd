"""The journal thread's part: one batch, one write, one barrier.

Everything here blocks and runs in one thread, in order. *Rules*: after a failed barrier the segment is sick and nothing
is written to it again; the next batch needs `turn_over` to a fresh one whose header denies the failed batch. What is
written to a file without a name is durable and yet lost: so the first batch after `is_check_due` was set looks whether
directory, lock and segments are found under the names they were opened under.

*Not here*: gathering (`journal.commit`), the meaning of records.
"""

from __future__ import annotations

import enum
import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import attrs

from mailismus.disk.interface import IDisk, NameStanding
from mailismus.disk.presence import Missing, Presence
from mailismus.journal.batch import (
    BATCH_HEAD_SIZE,
    BLOCK,
    NONCE_SIZE,
    OLDEST_FORMAT,
    SegmentHeader,
    encode_batch,
    padded_size,
)
from mailismus.journal.segment import Segment, file_name
from mailismus.observe.metrics import Distribution

RandomBytes = Callable[[int], bytes]

BARRIERS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@attrs.frozen
class Written:
    """Where a batch went: the segment's number, and the offset of its first record in that segment's file."""

    segment: int
    offset: int
    sequence: int


class Claim(enum.Enum):
    """What a batch may begin a segment with."""

    ANY = "any free segment: what it says empties the queue"
    BEYOND_RESERVE = "one beyond the reserve: it holds mail, which can be refused"


class NoSegment(OSError):
    """No free segment is there: the journal can't grow now. Nothing was written, nothing is sick.

    `is_coming`: one is being made, or will be.
    """

    def __init__(self, *, is_coming: bool) -> None:
        super().__init__(errno.ENOSPC, "no free journal segment")
        self.is_coming = is_coming


class Unsound(OSError):
    """Segments have lost their names, or a part of their bytes, in a directory that is where it was. Nothing was written;
    they are sick (`sick`)."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        cut, lost = "is shorter than it was", "can't be found there any more"
        faults = ", ".join(f"{segment.path} {cut if segment.has_name() else lost}" for segment in segments)
        super().__init__(errno.ENOENT, f"{faults}; what lives there is written again")

    def __str__(self) -> str:
        return str(self.strerror)


class JournalWriter:
    """Appends batches. `next_segment` hands out a free segment (or raises OSError)."""

    def __init__(
        self,
        disk: IDisk,
        directory: str,
        next_segment: Callable[[Claim], Segment],
        random_bytes: RandomBytes,
        *,
        last_number: int,
        last_sequence: int,
        monotonic: Callable[[], float] = time.monotonic,
        presence: Presence | None = None,
    ) -> None:
        """`presence`: what the journal's files are found by; None: nobody looks."""
        self._disk = disk
        self._monotonic = monotonic
        self._directory = directory
        self._next_segment = next_segment
        self._random_bytes = random_bytes
        self._presence = presence
        self.is_check_due = presence is not None
        """The next batch looks first. Set in the reactor's thread, now and then."""
        self._number = last_number
        self.sequence = last_sequence
        """Of the last batch whose barrier returned (or that a start found)."""
        self.epoch = 0
        self.horizon = 0
        """Goes into the next header: of the newest checkpoint that is durable."""
        self.format = OLDEST_FORMAT
        """Of the segments begun from now on: the lowest that holds all records to come. A batch never goes into a segment of
        a lower one. It only rises, and that in the reactor's thread."""
        self.current: Segment | None = None
        self.segments: dict[int, Segment] = {}
        """Every segment in use, by number."""
        self.barriers_s = Distribution(BARRIERS_S)
        """How long batches took from their write to the return of their barrier, those that failed left out."""
        self.written_bytes = 0
        """Of batches made durable."""
        self.sick: frozenset[int] = frozenset()
        """Numbers of the segments that the last call could not write or sync, or that it did not find."""
        self.spoiled: list[Segment] = []
        """Free segments that could not be begun: whoever learns of the failure removes them."""

    def require_format(self, number: int) -> None:
        """Write into segments of this format or a newer one from now on."""
        self.format = max(self.format, number)

    def append(self, records: Sequence[bytes], records_size: int, claim: Claim = Claim.ANY) -> Written:
        """One batch. Durable when it returns. Raises OSError: nothing of it counts, and the segment is sick (`sick`), but
        for `NoSegment` and `Missing`."""
        self.sick = frozenset()
        if self.is_check_due:
            self._check_for(claim)
        segment = self.current
        if segment is None or segment.room < padded_size(records_size) or segment.format < self.format:
            segment = self._begin(self.sequence, claim)
        offset = segment.end
        sequence = self.sequence + 1
        begun_at = self._monotonic()
        try:
            segment.file.write_at(offset, encode_batch(segment.nonce, sequence, records, records_size))
            segment.file.sync()
        except OSError:
            self.sick = frozenset((segment.number,))
            raise
        self.barriers_s.note(self._monotonic() - begun_at)
        self.sequence = segment.last_sequence = sequence
        size_bytes = padded_size(records_size)
        segment.end = offset + size_bytes
        self.written_bytes += size_bytes
        return Written(segment.number, offset + BATCH_HEAD_SIZE, sequence)

    def check(self) -> None:
        """Look whether directory, lock and segments are where they were opened, and segments as long as they were made.
        Raises `Missing`, `Unsound`."""
        self.sick = frozenset()
        if self._presence is None:
            return
        self._presence.check()
        lost = [one for one in list(self.segments.values()) if not one.is_given_up and not one.is_whole()]
        # What the horizon has passed meanwhile is somebody else's: its name may be gone for good.
        lost = [segment for segment in lost if self.segments.get(segment.number) is segment]
        if lost:
            self.sick = frozenset(segment.number for segment in lost)
            raise Unsound(lost)

    def _check_for(self, claim: Claim) -> None:
        """Before a batch. A segment that is gone for good is nobody else's: what empties the queue is written into it all
        the same, so that what this process alone knows can be delivered."""
        try:
            self.check()
            self.is_check_due = False
        except Missing:
            current = self.current
            if (
                claim is Claim.BEYOND_RESERVE
                or current is None
                or current.file.standing(current.path) is not NameStanding.REMOVED
            ):
                raise

    def set_epoch(self, epoch: int) -> None:
        """Headers of segments that are begun from now on tell this epoch: it is durable."""
        self.epoch = epoch

    def move_horizon(self, horizon: int) -> None:
        """Nothing up to the batch of this sequence number is needed any more. Never moves back."""
        self.horizon = max(self.horizon, horizon)

    def turn_over(self) -> None:
        """The next batch begins a fresh segment, whose header denies whatever lies behind the last good batch. The sick ones
        are not looked for any more."""
        for number in self.sick & self.segments.keys():
            self.segments[number].is_given_up = True
        self.current = None

    def say_again(self, sequence: int, records: Sequence[bytes], records_size: int) -> Written:
        """A start's first act: the last batch found, under its own sequence number, in a fresh segment that denies the
        one found. Durable when it returns."""
        self.sequence = sequence - 1
        self.turn_over()
        return self.append(records, records_size)

    def _begin(self, last_good: int, claim: Claim) -> Segment:
        while not (segment := self._next_segment(claim)).is_whole():
            self.spoiled.append(segment)
        self._number += 1
        # Not synced, and no reason to stop: the header, not the name, says which segment this is.
        with suppress(OSError):
            self._name(segment)
        nonce = self._random_bytes(NONCE_SIZE)
        try:
            header = SegmentHeader(self._number, last_good + 1, last_good, self.epoch, self.horizon, nonce, self.format)
            segment.begin(header)
        except OSError:
            self.spoiled.append(segment)
            raise
        self.current = self.segments[self._number] = segment
        return segment

    def _name(self, segment: Segment) -> None:
        """The file gets the name of the segment's number, which is the next that no other file has: a free segment may have
        it, which was to be begun under this number when a crash came before its header."""
        path = os.path.join(self._directory, file_name(self._number))
        while path != segment.path and self._disk.exists(path):
            self._number += 1
            path = os.path.join(self._directory, file_name(self._number))
        if path != segment.path:
            self._disk.rename(segment.path, path)
            segment.path = path


def most_records_size(segment_bytes: int) -> int:
    """Bytes of records that one batch may hold: it fills a segment of its own."""
    return segment_bytes - BLOCK - BATCH_HEAD_SIZE
