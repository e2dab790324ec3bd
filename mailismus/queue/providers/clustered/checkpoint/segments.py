"""Journal segments: how long the journal is, which segments failed, and freeing those before the horizon.

*Rules*: a segment is free when no batch in it is younger than the horizon of a durable checkpoint. A segment whose barrier
failed is not used again. A segment with a content that could not be read is kept in `corrupt/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mailismus.journal.pool import SegmentPool
from mailismus.journal.segment import Segment
from mailismus.journal.writer import JournalWriter

MOST_TRIES = 3
"""Checkpoints that are abandoned because a content can't be read in the journal, before its message moves without it."""


class JournalSegments:
    """Segments of one journal that are in use. `maxsize`: bytes; `corrupt_path`: where unreadable ones are kept."""

    def __init__(self, writer: JournalWriter, pool: SegmentPool, maxsize: int, corrupt_path: str) -> None:
        self._writer = writer
        self._pool = pool
        self._maxsize = maxsize
        self._corrupt_path = corrupt_path
        self._failed: set[int] = set()
        """Numbers of segments that a barrier failed for."""
        self._unread: dict[int, int] = {}
        """Segments of which a content could not be read, and how often."""
        self._to_keep: set[int] = set()
        """Segments of which a content never could be read: they are kept for people who may read it."""
        self.excess = 0.0
        """How much longer than `maxsize` the journal is, as a share of that; 0: it is not."""
        self.measure()

    @property
    def used_bytes(self) -> int:
        """Bytes written to the segments in use."""
        return sum(segment.end for segment in list(self._writer.segments.values()))

    @property
    def is_full(self) -> bool:
        """The journal is twice as long as `maxsize`: no mail is accepted."""
        return self._measured_bytes > 2 * self._maxsize

    def measure(self) -> None:
        """Measure how long the journal is: after each batch and when segments are freed, since each message asks for it."""
        self._measured_bytes = self.used_bytes
        self.excess = max(0.0, self._measured_bytes / self._maxsize - 1)

    @property
    def has_failed(self) -> bool:
        """Whether a segment is in use that a barrier failed for."""
        return bool(self._failed & self._writer.segments.keys())

    def note_failed(self) -> Collection[int]:
        """Return the segments that a barrier failed for, or that are gone: they are not used again. A checkpoint soon moves
        their live entries that could not be rewritten."""
        failed = self._writer.sick
        self._failed.update(failed)
        return failed

    def top_up(self) -> None:
        """Have free segments made ahead of need."""
        self._pool.top_up()

    def remove_spoiled(self) -> None:
        """Remove segments that could not be begun."""
        spoiled = self._writer.spoiled
        while spoiled:
            self._pool.remove(spoiled.pop())

    def in_use(self) -> Mapping[int, Segment]:
        """Return the segments in use by number; a copy, for a worker."""
        return self._writer.segments.copy()

    def note_unread(self, segment: int) -> None:
        """A content could not be read in this segment, and its checkpoint is abandoned."""
        self._unread[segment] = self._unread.get(segment, 0) + 1

    def given_up(self) -> Collection[int]:
        """Return the segments of which a content could not be read too often: its message moves without it."""
        return {segment for segment, tries in self._unread.items() if tries >= MOST_TRIES}

    def free(self, horizon: int, unread: Collection[int]) -> None:
        """Free the segments before the horizon of an applied checkpoint. `unread`: those that held a content that it could
        not read."""
        self._to_keep.update(unread)
        writer = self._writer
        writer.move_horizon(horizon)
        for number, segment in sorted(writer.segments.copy().items()):
            if segment.last_sequence <= horizon and segment is not writer.current:
                del writer.segments[number]
                self._unread.pop(number, None)
                if number in self._to_keep:
                    self._to_keep.discard(number)
                    self._failed.discard(number)
                    self._pool.set_aside(segment, self._corrupt_path)
                elif number in self._failed:
                    self._failed.discard(number)
                    self._pool.remove(segment)
                else:
                    self._pool.adopt(segment)
        self.measure()
        self._pool.top_up()
