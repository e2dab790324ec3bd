"""Warnings: which failures are logged, and which were logged within the last hour. Pure.

*Rules*: of each host, fault and demand one in an hour. At most `MAX_KNOWN` are remembered; the oldest is dropped first.
"""

from __future__ import annotations

from collections.abc import Hashable

EVERY_S = 3600.0
MAX_KNOWN = 10_000


class Warnings:
    """What was logged, and when. `now`: monotonic seconds."""

    def __init__(self, max_known: int = MAX_KNOWN) -> None:
        self._max_known = max_known
        self._told_at: dict[Hashable, float] = {}  # the oldest first

    def tell(self, subject: Hashable, now: float) -> bool:
        """Whether to log this now; it counts as logged then."""
        told_at = self._told_at.get(subject)
        if told_at is not None and now - told_at < EVERY_S:
            return False
        self._told_at.pop(subject, None)
        while len(self._told_at) >= self._max_known:
            del self._told_at[next(iter(self._told_at))]
        self._told_at[subject] = now
        return True
