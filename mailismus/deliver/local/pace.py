"""The pace of local deliveries: how many at a time make the most of the disk. Pure.

A delivery waits for commits of a file system's journal. Beyond a few at a time each waits for the commits of others, too: it
takes longer, and no more are done in a second. Mail for others that comes meanwhile would wait longer for nothing.

*Rules*
- The limit doubles while deliveries take little longer at it than the quickest ones of late, until it falls once; then it
  grows by one. It falls by a quarter when they take so much longer that more than `MOST_BEHIND` of them wait for the others.
  A server that serves many at a time, over a network, gets many.
- The quickest one is found anew, with one delivery at a time, each `QUICKEST_FOR_S`: else others would always be beside it.
- Only deliveries that others waited for tell something of the limit; small ones, since large ones take long by themselves.
- A delivery that takes longer than `SLOW_S` is no measure, and does not count towards the limit while it goes on: one slow
  user holds up nobody, and a disk that is slow has as many deliveries as there are workers.

Source: the estimate of a queue by the shortest and the present delay is that of TCP Vegas (Brakmo and Peterson, 1995).
"""

from __future__ import annotations

import math

FIRST = 3
"""The limit at first."""
LEAST = 2
"""So that a second one gathers behind a commit."""
FEW_BEHIND = 0.5
"""The limit grows while fewer deliveries than this wait for the others."""
MOST_BEHIND = 1.0
"""It falls when more do."""
SLOW_S = 0.1
SMALL = 65536
"""Bytes of a message that is a measure."""
LOOK_EVERY = 5
"""Deliveries between two decisions."""
QUICKEST_FOR_S = 30.0
"""For how long the quickest delivery counts: disks and users change."""


class DeliveryPace:
    """The limit, and how long deliveries take. Times are monotonic seconds. `most`: workers."""

    def __init__(self, most: int) -> None:
        self._most, self._least = most, min(LEAST, most)
        self.limit = min(FIRST, most)
        """How many deliveries may go on at a time, without those that have gone on for `SLOW_S`."""
        self._has_fallen = False
        """Since the quickest one was found anew."""
        self._sum_s = 0.0
        self._count = 0
        self._quickest_s = math.inf
        self._quickest_until = 0.0

    def note(self, duration_s: float, size_bytes: int, now: float, *, others_waited: bool) -> None:
        """Note that a delivery of so many bytes succeeded. `others_waited`: the limit was reached."""
        if duration_s > SLOW_S or size_bytes > SMALL:
            return
        if self._quickest_s == math.inf:
            self._quickest_until = now + QUICKEST_FOR_S
        elif self._quickest_until <= now:
            self._begin_anew(now)
        self._quickest_s = min(self._quickest_s, duration_s)
        if others_waited:
            self._sum_s += duration_s
            self._count += 1
            if self._count >= LOOK_EVERY:
                self._decide(self._sum_s / self._count)
                self._sum_s, self._count = 0.0, 0

    def _begin_anew(self, now: float) -> None:
        """Find the quickest time anew."""
        self._quickest_s, self._quickest_until = math.inf, now + QUICKEST_FOR_S
        self._sum_s, self._count = 0.0, 0
        self.limit, self._has_fallen = 1, False

    def _decide(self, mean_s: float) -> None:
        behind = self.limit * (1 - self._quickest_s / mean_s) if mean_s > 0 else 0.0
        if behind > MOST_BEHIND:
            self.limit, self._has_fallen = max(self._least, self.limit * 3 // 4), True
        elif behind < FEW_BEHIND:
            self.limit = min(self._most, self.limit + (1 if self._has_fallen else self.limit))
