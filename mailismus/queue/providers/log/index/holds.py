"""Holds: how many live envelopes, and contents of live envelopes, each segment has, and how many bytes these are. Pure.

A content that several envelopes refer to counts once for each of them.
"""

from __future__ import annotations


class Holds:
    """Counts by number of the segment. 0 stands for no segment, and is never counted."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._bytes: dict[int, int] = {}

    def add(self, segment: int, size_bytes: int, count: int = 1) -> None:
        """So many things in this segment, together of this size, are needed."""
        if segment:
            self._counts[segment] = self._counts.get(segment, 0) + count
            self._bytes[segment] = self._bytes.get(segment, 0) + size_bytes

    def drop(self, segment: int, size_bytes: int) -> None:
        """One of them is not needed any more."""
        if segment:
            left = self._counts[segment] - 1
            if left:
                self._counts[segment] = left
                self._bytes[segment] -= size_bytes
            else:
                del self._counts[segment], self._bytes[segment]

    def is_needed(self, segment: int) -> bool:
        """Whether anything in it is needed."""
        return segment in self._counts

    def live_bytes(self, segment: int) -> int:
        """Return the bytes of all that is needed there."""
        return self._bytes.get(segment, 0)
