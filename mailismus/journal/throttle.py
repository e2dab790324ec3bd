"""The brake: while the journal is longer than `maxsize`, 250s come one after the other at an interval, so that reception
goes no faster than what is written behind. The longer the journal, the longer the interval. No 250 waits long for it, and
there is no moment at which nobody is answered.

Knows no clock and no Deferred.
"""

from __future__ import annotations

LONGEST_S = 0.010
"""Seconds between two 250s when the journal is twice as long as `maxsize`; behind that mail is refused."""

MOST_WAIT_S = 1.0
"""Seconds that one 250 waits at most, however many are before it."""


class CommitThrottle:
    """Says how long each 250 is to wait."""

    def __init__(self) -> None:
        self._next_s = 0.0
        """When the next one may go."""
        self.braked = 0
        """250s that had to wait."""

    def delay_s(self, now_s: float, excess: float) -> float:
        """Seconds from now. `excess`: how much longer the journal is than `maxsize`, as a share of that; 0: it is not."""
        if not excess:
            return 0.0
        self.braked += 1
        interval_s = LONGEST_S * min(excess, 1.0)
        self._next_s = min(max(self._next_s, now_s) + interval_s, now_s + MOST_WAIT_S)
        return self._next_s - now_s
