"""Holds: how many live envelopes, and contents of live envelopes, each segment has. Pure."""

from __future__ import annotations


class Holds:
    """Counts by number of the segment. 0 stands for no segment, and is never counted."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, segment: int, count: int = 1) -> None:
        """Something in this segment is needed."""
        if segment:
            self._counts[segment] = self._counts.get(segment, 0) + count

    def drop(self, segment: int) -> None:
        """It is not needed any more."""
        if segment:
            left = self._counts[segment] - 1
            if left:
                self._counts[segment] = left
            else:
                del self._counts[segment]

    def is_needed(self, segment: int) -> bool:
        """Whether anything in it is needed."""
        return segment in self._counts
