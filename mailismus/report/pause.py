"""How long what failed is left alone: as long again as it has failed already, within bounds. Pure.

A trouble of a moment delays reports by little, a long one is not asked about all the time.
"""

import math

FIRST_S = 1.0


def pause_s(failing_s: float, longest_s: float) -> float:
    """Return the seconds until the next try of what has failed for `failing_s` seconds."""
    return min(longest_s, max(FIRST_S, failing_s))


class Trouble:
    """Pauses of what fails now and then, in monotonic seconds. A trouble is over when that is said, or when nothing
    failed for the longest pause behind the last one."""

    def __init__(self) -> None:
        self._since = self._next_try_at = -math.inf

    def failed(self, now: float, longest_s: float) -> float:
        """It has failed. Return the seconds until the next try."""
        if now - self._next_try_at > longest_s:
            self._since = now
        wait_s = pause_s(now - self._since, longest_s)
        self._next_try_at = now + wait_s
        return wait_s

    def end(self) -> None:
        """The trouble is over."""
        self._next_try_at = -math.inf
