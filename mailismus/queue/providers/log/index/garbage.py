"""Which segments are emptied, and when: those with the least live bytes, while the log is long beside all live bytes. Pure.

    used > LONG_SHARE * live + LONG_SEGMENTS  ->  choose the emptiest, until used <= SHORT_SHARE * live + SHORT_SEGMENTS

What is chosen is written again at the end of the log, and its segment is free. The emptier a segment, the fewer bytes are
written for one that is won: with a log twice as long as what lives in it, the emptiest segments are less than half full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LONG_SHARE, LONG_SEGMENTS = 1.75, 2
"""A log beyond this is too long. The bound that it is kept below is 2 x live bytes + 4 segments."""

SHORT_SHARE, SHORT_SEGMENTS = 1.6, 1
"""How long a log is short enough, once it was too long."""

MOST_MOVED = 64 << 20
"""Live bytes of the segments that are emptied at the same time, at most (one segment may have more)."""


class SegmentUse(NamedTuple):
    """A segment that may be emptied: its number, bytes of its file, bytes of what lives in it."""

    number: int
    size_bytes: int
    live_bytes: int


class LogUse(NamedTuple):
    """The whole log: bytes of the files in use, bytes of what lives in them, bytes of one segment."""

    used_bytes: int
    live_bytes: int
    segment_bytes: int

    @property
    def is_long(self) -> bool:
        """Whether segments should be emptied."""
        return self.used_bytes > LONG_SHARE * self.live_bytes + LONG_SEGMENTS * self.segment_bytes


def choose_segments(log: LogUse, segments: Sequence[SegmentUse], most_moved: int) -> list[int]:
    """Return which of these segments are emptied next, the emptiest first; none: the log is short enough, or nothing is won.
    `most_moved`: live bytes in them, at most, but for the first one's (`MOST_MOVED`), if that is less than half full."""
    if not log.is_long:
        return []
    excess = log.used_bytes - SHORT_SHARE * log.live_bytes - SHORT_SEGMENTS * log.segment_bytes
    chosen: list[int] = []
    moved = 0
    for use in sorted(segments, key=lambda use: (use.live_bytes / use.size_bytes, use.number)):
        gain = use.size_bytes - use.live_bytes
        is_first_and_empty = not chosen and 2 * use.live_bytes <= use.size_bytes
        if excess <= 0 or 4 * gain < use.size_bytes or (moved + use.live_bytes > most_moved and not is_first_and_empty):
            break
        chosen.append(use.number)
        moved += use.live_bytes
        excess -= gain
    return chosen
