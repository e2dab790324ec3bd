"""Commit throttle: while the journal is longer than `maxsize`, replies 250 are spaced at an interval, so that reception is
no faster than checkpoints. The interval grows with the journal. No 250 waits longer than `MOST_WAIT_S`.

Pure: no clock, no Deferred.
"""

from __future__ import annotations

LONGEST_S = 0.010
"""Seconds between two 250s when the journal is twice as long as `maxsize`; beyond that mail is refused."""

MOST_WAIT_S = 1.0
"""Seconds that one 250 waits at most."""


class CommitThrottle:
    """Computes the delay of each 250."""

    def __init__(self) -> None:
        self._next_s = 0.0
        """Time of the next 250, at the earliest."""
        self.braked = 0
        """Number of 250s that were delayed."""

    def delay_s(self, now_s: float, excess: float) -> float:
        """Delay of the next 250 in seconds. `excess`: bytes of the journal above `maxsize`, as a share of `maxsize`."""
        if not excess:
            return 0.0
        self.braked += 1
        interval_s = LONGEST_S * min(excess, 1.0)
        self._next_s = min(max(self._next_s, now_s) + interval_s, now_s + MOST_WAIT_S)
        return self._next_s - now_s
