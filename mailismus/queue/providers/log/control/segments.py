"""Segments of the log that are in use: which of them have failed, and which nobody needs any more.

*Rules*: marks are written to segments that are complete and have not failed. A segment is over when no live envelope and no
content of one is in it, all marks in it are durable, and durable positions begin behind it. Its header may deny batches of
the segment before it: it is over only when that one has not failed. It is free, and may be begun anew, when its name says so
durably. A failed segment is removed, durably, and never used again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mailismus.journal.pool import SegmentPool
from mailismus.journal.segment import Segment
from mailismus.journal.writer import JournalWriter
from mailismus.queue.providers.log.index.garbage import LogUse, SegmentUse
from mailismus.queue.providers.log.index.holds import Holds
from mailismus.queue.providers.log.index.resting import Resting


class LogSegments:
    """Segments of one log."""

    def __init__(self, writer: JournalWriter, pool: SegmentPool, holds: Holds, resting: Resting) -> None:
        self._writer, self._pool, self._holds, self._resting = writer, pool, holds, resting
        self._failed: set[int] = set()
        self._trimmed_at = 0
        """Bytes written when it was last asked whether the log is quiet."""

    @property
    def used_bytes(self) -> int:
        """Bytes written to the segments in use."""
        return sum(segment.end for segment in list(self._writer.segments.values()))

    @property
    def count(self) -> int:
        """Number of segments in use."""
        return len(self._writer.segments)

    @property
    def failed(self) -> Collection[int]:
        """Segments in use of which a barrier or a sync failed."""
        return self._failed

    def note_failed(self) -> Collection[int]:
        """Return the segments that the last batch failed for: they are not used again."""
        failed = self._writer.sick
        self._failed.update(failed)
        return failed

    def fail(self, segment: int) -> None:
        """Note that the marks of a segment could not be made durable."""
        self._failed.add(segment)

    def top_up(self) -> None:
        """Have free segments made ahead of need."""
        self._pool.top_up()

    def remove_spoiled(self) -> None:
        """Remove segments that could not be begun."""
        spoiled = self._writer.spoiled
        while spoiled:
            self._pool.remove(spoiled.pop())

    def markable(self, number: int) -> bool:
        """Whether marks may be written to this segment now."""
        segment = self._writer.segments.get(number)
        return segment is not None and segment is not self._writer.current and number not in self._failed

    def in_use(self) -> Mapping[int, Segment]:
        """The segments in use by number."""
        return self._writer.segments

    def forget(self, segments: Collection[Segment]) -> None:
        """Note that these segments are removed, durably."""
        for segment in segments:
            self._failed.discard(segment.number)
            self._resting.forget_segment(segment.number)
            del self._writer.segments[segment.number]

    def begin_suffix_at(self, suffix: int) -> None:
        """Note that durable positions begin at this sequence number: the working suffix does."""
        self._writer.move_horizon(suffix - 1)

    def over(self, suffix: int, unmarked: Collection[int]) -> list[Segment]:
        """Return what nobody needs any more. `suffix`: where durable positions begin; `unmarked`: segments with marks that
        are not durable yet."""
        before = self._before()
        over = []
        for segment in self.unneeded():
            number = segment.number
            denies = before[number] in self._failed
            if segment.last_sequence < suffix and number not in self._failed and number not in unmarked and not denies:
                over.append(segment)
        return over

    def free(self, segments: Collection[Segment]) -> None:
        """Hand these segments to the pool: they are over, and have the names of free ones durably."""
        for segment in segments:
            del self._writer.segments[segment.number]
            self._resting.forget_segment(segment.number)
            self._pool.adopt(segment)

    @property
    def is_known(self) -> bool:
        """Whether it is known of each segment what lives in it."""
        return self._resting.is_known

    def use(self) -> LogUse:
        """Return how long the log is, and how much lives in it."""
        used = list(self._writer.segments.copy().values())
        live_bytes = sum(min(self._holds.live_bytes(segment.number), segment.size_bytes) for segment in used)
        return LogUse(sum(segment.size_bytes for segment in used), live_bytes, self._pool.size_bytes)

    def may_be_emptied(self) -> list[SegmentUse]:
        """Return the segments that something lives in, and that are complete and lie before the working suffix."""
        horizon = self._writer.horizon
        return [
            SegmentUse(number, segment.size_bytes, min(self._holds.live_bytes(number), segment.size_bytes))
            for number, segment in self._writer.segments.copy().items()
            if self.markable(number) and segment.last_sequence <= horizon and self._holds.is_needed(number)
        ]

    @property
    def free_beyond_reserve(self) -> int:
        """How many free segments there are beside those that are kept for settlements and the next start."""
        return len(self._pool) - self._pool.reserve

    def is_needed(self, number: int) -> bool:
        """Whether it is in use, and something lives in it."""
        return number in self._writer.segments and self._holds.is_needed(number)

    def trim_if_quiet(self) -> None:
        """Remove free segments above the number that is made ahead, if little was written since the last call."""
        written = self._writer.written_bytes
        if written - self._trimmed_at < self._pool.size_bytes // 4:
            self._pool.trim()
        self._trimmed_at = written

    def _before(self) -> dict[int, int]:
        """Return the number of the segment before each one, 0 for the first."""
        numbers = sorted(self._writer.segments.copy())
        return dict(zip(numbers, [0, *numbers], strict=False))

    def unneeded(self) -> list[Segment]:
        """Return the segments in which nothing is needed but, maybe, records about envelopes elsewhere."""
        if not self._resting.is_known:
            return []  # what has not been read may need any of them
        current, needed = self._writer.current, self._holds.is_needed
        return [
            segment
            for number, segment in sorted(self._writer.segments.copy().items())
            if segment is not current and not needed(number)
        ]
