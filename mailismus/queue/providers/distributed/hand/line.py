"""Triggers in line: so many of them are loaded side by side, in the order in which they came, the next one as one ends.
Pure."""

from __future__ import annotations

from collections import deque

from mailismus.queue.providers.distributed.hand.waiting import WaitingTrigger


class TriggerLine:
    """One line. `at_a_time`: how many are loaded at once."""

    def __init__(self, at_a_time: int) -> None:
        self._at_a_time = at_a_time
        self._line: deque[WaitingTrigger] = deque()
        self._under_way = 0

    def add(self, waiting: WaitingTrigger) -> None:
        """One more."""
        self._line.append(waiting)

    def begin(self) -> WaitingTrigger | None:
        """The next one, which is being loaded from now on until `end`; None: there is none, or as many are as may be."""
        if not self._line or self._under_way >= self._at_a_time:
            return None
        self._under_way += 1
        return self._line.popleft()

    def end(self) -> None:
        """One was loaded."""
        self._under_way -= 1
