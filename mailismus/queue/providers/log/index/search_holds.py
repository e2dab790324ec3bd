"""Which segments searches and counts have still to come to: compaction leaves alone what lies there. Pure.

What compaction moves lies behind the end of a search that began before, so the search would miss it. A search holds the
segments between its position and the newest one of its beginning, and those that contents of these lie in. It ends with
its last page; one that is not asked for its next page holds nothing after `HOLD_S`: a pager may wait for hours.

*Rules*: of a count by a plan, in another process, nobody tells the end. All plans together hold for `PLAN_HOLD_S` at a time,
and then as long nothing: who counts all the time does not stop compaction.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.queue.providers.log.index.resting import Resting

HOLD_S = 30.0
"""Seconds behind a page for which a search holds segments."""
PLAN_HOLD_S = 20.0
"""Seconds for which plans hold segments, from the first one on."""


class SearchHolds:
    """The searches of one queue that are under way. `now_s`: seconds of a clock that does not jump."""

    def __init__(self, resting: Resting, now_s: Callable[[], float]) -> None:
        self._resting, self._now_s = resting, now_s
        self._held: dict[object, tuple[int, int, float]] = {}
        """By search: the first segment and the last, and until when."""
        self._plans_last, self._plans_until_s = 0, -PLAN_HOLD_S
        """The last segment that plans hold, and until when."""

    def hold(self, search: object, first: int, last: int) -> None:
        """A search has come to the segment `first`, and will go on to `last`."""
        self._held[search] = first, last, self._now_s() + HOLD_S

    def hold_for_plan(self, last: int) -> None:
        """A count by a plan has begun, which reads the segments up to `last`."""
        now_s = self._now_s()
        if now_s >= self._plans_until_s + PLAN_HOLD_S:
            self._plans_last, self._plans_until_s = 0, now_s + PLAN_HOLD_S
        self._plans_last = max(self._plans_last, last)

    def end(self, search: object) -> None:
        """A search has ended."""
        self._held.pop(search, None)

    def segments(self) -> set[int]:
        """Return the segments that are held."""
        now_s = self._now_s()
        self._held = {search: held for search, held in self._held.items() if held[2] > now_s}
        ranges = [(first, last) for first, last, _ in self._held.values()]
        if now_s < self._plans_until_s:
            ranges.append((0, self._plans_last))
        found: set[int] = set()
        for piece in self._resting.all() if ranges else ():
            if any(first <= piece.segment <= last for first, last in ranges):
                found.add(piece.segment)
                found |= piece.refers
        return found
