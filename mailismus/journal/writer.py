"""The journal thread's part: one batch, one write, one barrier.

Everything here blocks and runs in one thread, in order. *Rules*: after a failed barrier the segment has failed ("sick") and
is not written again; before the next batch comes `turn_over`, to a new segment whose header denies the failed batch. Bytes
written to a file without a name are durable and yet lost: so the first batch after `is_check_due` was set checks that
directory, lock and segments still have the names under which they were opened.

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

MOST_CHECKED = 16
"""Segments whose names one check looks at: the newest ones and, of the others, each in its turn."""

NEWEST_CHECKED = 4
"""How many of the newest segments each check looks at."""

BARRIERS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@attrs.frozen
class Written:
    """Place of a batch: the segment's number, and the offset of its first record in the file."""

    segment: int
    offset: int
    sequence: int


class Claim(enum.Enum):
    """Which free segments a batch may take."""

    ANY = "any free segment: what it says empties the queue"
    BEYOND_RESERVE = "one beyond the reserve: it holds mail, which can be refused"


class NoSegment(OSError):
    """There is no free segment: the journal can't grow now. Nothing was written, no segment has failed.

    `is_coming`: one is being created, or will be. Else its `errno` is that of the error that keeps segments from being
    created: a full disk is only one of them.
    """

    def __init__(self, cause: OSError | None) -> None:
        """`cause`: why the last attempt to create a segment failed; None: it did not. A directory that was missing then is
        no cause any more: the writer has looked for it since."""
        self.is_coming = cause is None or isinstance(cause, Missing)
        why = "" if cause is None else f": {cause.strerror or cause}"
        super().__init__(errno.ENOSPC if cause is None else cause.errno, f"no free journal segment{why}")


class Unsound(OSError):
    """Segments have lost their names, or a part of their bytes, in a directory that is still there. Nothing was written;
    these segments have failed (`sick`)."""

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
        has_marks: bool = False,
    ) -> None:
        """`presence`: whether directory and lock have their names; None: not checked. `has_marks`: the records have marks
        (`journal.frame`)."""
        self._disk = disk
        self._monotonic = monotonic
        self._directory = directory
        self._next_segment = next_segment
        self._random_bytes = random_bytes
        self._presence = presence
        self._has_marks = has_marks
        self.is_check_due = presence is not None
        """The next batch is preceded by a check of names. Set in the reactor's thread, now and then."""
        self._number = last_number
        self.sequence = last_sequence
        """Of the last durable batch (or the last one that a start found)."""
        self.epoch = 0
        self.horizon = 0
        """Of the newest durable checkpoint. Goes into the next header."""
        self.format = OLDEST_FORMAT
        """Of the segments begun from now on: the lowest that holds all records to come. A batch never goes into a segment of
        a lower one. It only rises, and that in the reactor's thread."""
        self.current: Segment | None = None
        self.segments: dict[int, Segment] = {}
        """Every segment in use, by number."""
        self.barriers_s = Distribution(BARRIERS_S)
        """Durations of successful batches, from write to return of the barrier."""
        self.written_bytes = 0
        """Bytes of durable batches."""
        self.sick: frozenset[int] = frozenset()
        """Numbers of the segments that the last call could not write, sync or find."""
        self._checked = 0
        """Number of the segment up to which the older ones were checked."""
        self.spoiled: list[Segment] = []
        """Free segments that could not be begun. The handler of the failure removes them."""

    def require_format(self, number: int) -> None:
        """Write into segments of this format or a newer one from now on."""
        self.format = max(self.format, number)

    def append(
        self, records: Sequence[bytes], records_size: int, claim: Claim = Claim.ANY, *, is_marked: bool = False
    ) -> Written:
        """Write one batch. Durable when it returns. `is_marked`: as in `encode_batch`. Raises OSError: the batch does not
        count, and the segment has failed (`sick`); after `NoSegment` and `Missing` it has not."""
        self.sick = frozenset()
        if self.is_check_due:
            self._check_for(claim)
        segment = self._segment_for(padded_size(records_size), claim)
        offset = segment.end
        sequence = self.sequence + 1
        begun_at = self._monotonic()
        try:
            encoded = encode_batch(
                *(segment.nonce, sequence, records, records_size), has_marks=self._has_marks, is_marked=is_marked
            )
            segment.file.write_at(offset, encoded)
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
        """Check that directory, lock and segments have their names, and segments their length: at most `MOST_CHECKED`
        segments, the newest ones each time. Raises `Missing`, `Unsound`."""
        self.sick = frozenset()
        if self._presence is None:
            return
        self._presence.check()
        lost = [one for one in self._to_check() if not one.is_given_up and not one.is_whole()]
        # A segment that was freed meanwhile may have another name, or none.
        lost = [segment for segment in lost if self.segments.get(segment.number) is segment]
        if lost:
            self.sick = frozenset(segment.number for segment in lost)
            raise Unsound(lost)

    def _to_check(self) -> list[Segment]:
        """The segments to check now."""
        used = sorted(self.segments.copy().items())
        if len(used) <= MOST_CHECKED:
            return [segment for _, segment in used]
        newest, older = used[-NEWEST_CHECKED:], used[:-NEWEST_CHECKED]
        behind = [one for one in older if one[0] > self._checked]
        in_turn = (behind + older)[: MOST_CHECKED - NEWEST_CHECKED]
        self._checked = in_turn[-1][0]
        return [segment for _, segment in (*newest, *in_turn)]

    def _check_for(self, claim: Claim) -> None:
        """Check before a batch. Settlements are written even into a segment that was removed: no other process uses it, and
        the mail that this process alone holds can be delivered."""
        try:
            self.check()
            self.is_check_due = False
        except Missing:
            if claim is Claim.BEYOND_RESERVE or self.current is None or not self._is_removed(self.current):
                raise

    @staticmethod
    def _is_removed(segment: Segment) -> bool:
        """Whether nobody but this process can read the segment any more."""
        return segment.file.standing(segment.path) is NameStanding.REMOVED

    def _segment_for(self, size_bytes: int, claim: Claim) -> Segment:
        """Return the segment for a batch of this size: the current one, or another one that is begun for it."""
        segment = self.current
        if segment is None or segment.room < size_bytes:
            return self._begin(self.sequence, claim)
        if segment.format >= self.format:
            return segment
        try:
            return self._begin(self.sequence, claim)
        except Missing:
            if claim is Claim.BEYOND_RESERVE or not self._is_removed(segment):
                raise
            return segment  # as in `_check_for`; no older program will read it

    def set_epoch(self, epoch: int) -> None:
        """Headers of segments that are begun from now on tell this epoch: it is durable."""
        self.epoch = epoch

    def move_horizon(self, horizon: int) -> None:
        """Nothing up to the batch of this sequence number is needed any more. Never moves back."""
        self.horizon = max(self.horizon, horizon)

    def turn_over(self) -> None:
        """Let the next batch begin a new segment, whose header denies all batches above the last good one. The names of
        failed segments are not checked any more."""
        for number in self.sick & self.segments.keys():
            self.segments[number].is_given_up = True
        self.current = None

    def say_again(self, sequence: int, records: Sequence[bytes], records_size: int) -> Written:
        """Rewrite the last batch found, the first action of a start: under its own sequence number, in a new segment that
        denies the old copy. Marks that it has stay: nothing else may tell that these records are over. Durable when it
        returns."""
        self.sequence = sequence - 1
        self.turn_over()
        return self.append(records, records_size, is_marked=self._has_marks)

    def _begin(self, last_good: int, claim: Claim) -> Segment:
        if self._presence is not None:
            # Without their directory free segments look lost, and none can be created. That is `Missing`, and no full disk.
            self._presence.check()
        while not (segment := self._next_segment(claim)).is_whole():
            self.spoiled.append(segment)
        self._number += 1
        # Not synced, and no failure if it fails: the header, not the name, identifies the segment.
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
        """Rename the file to the segment's number, the next one that no other file has: a crash between rename and header
        leaves a free segment with such a name."""
        path = os.path.join(self._directory, file_name(self._number))
        while path != segment.path and self._disk.exists(path):
            self._number += 1
            path = os.path.join(self._directory, file_name(self._number))
        if path != segment.path:
            segment.rename(self._disk, path)


def most_records_size(segment_bytes: int) -> int:
    """Bytes of records in one batch, at most: it fills a segment of its own."""
    return segment_bytes - BLOCK - BATCH_HEAD_SIZE
