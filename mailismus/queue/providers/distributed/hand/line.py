"""Triggers in line: so many of them are loaded side by side, the next one as one ends. What was loaded comes into the hand
in the order in which the triggers came. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mailismus.queue.providers.distributed.hand.waiting import WaitingTrigger

Bring = Callable[[], None]
"""Brings what was loaded into the hand, or does what else is to be done with its trigger."""


class TriggerLine:
    """One line. `at_a_time`: how many are loaded at once."""

    def __init__(self, at_a_time: int) -> None:
        self._at_a_time = at_a_time
        self._line: deque[WaitingTrigger] = deque()
        self._under_way: dict[WaitingTrigger, Bring | None] = {}
        """Those that were begun, in order; None: it is still being loaded."""

    def add(self, waiting: WaitingTrigger) -> None:
        """One more."""
        self._line.append(waiting)

    def begin(self) -> WaitingTrigger | None:
        """The next one, which is being loaded from now on until `end`; None: there is none, or as many are as may be."""
        if not self._line or len(self._under_way) >= self._at_a_time:
            return None
        waiting = self._line.popleft()
        self._under_way[waiting] = None
        return waiting

    def end(self, waiting: WaitingTrigger, bring: Bring) -> list[Bring]:
        """One was loaded. Return whose turn it is: that of all those before which none is being loaded."""
        self._under_way[waiting] = bring
        turn: list[Bring] = []
        for one, loaded in list(self._under_way.items()):
            if loaded is None:
                break
            turn.append(loaded)
            del self._under_way[one]
        return turn
