"""Waiters: Deferreds that fire when entries of an area may be taken (`IQueue.ready`).

*Rules*: a waiter fires once. It may fire for an entry that another task takes first, but an entry of its area that may be
taken never leaves it waiting. A cancelled waiter is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from twisted.internet.defer import Deferred, succeed

from mailismus.queue.interface import Area
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.working_set import WorkingSet


class LogWaiters:
    """Waiters of one queue, by area. `now`: UTC seconds."""

    def __init__(self, working_set: WorkingSet, resting: Resting, now: Callable[[], float]) -> None:
        self._working_set, self._resting, self._now = working_set, resting, now
        self._waiting: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}
        self._on_news: Callable[[], None] = _nothing

    def listen(self, on_news: Callable[[], None]) -> None:
        """Call `on_news` whenever something may be taken."""
        self._on_news = on_news

    def ready(self, area: Area) -> Deferred[None]:
        """As `IQueue.ready`."""
        due_at = self._working_set.next_due(area)
        if self._has_ready(area) or (due_at is not None and due_at <= self._now()):
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._waiting[area].pop(gone, None))
        self._waiting[area][waiting] = None
        return waiting

    def _has_ready(self, area: Area) -> bool:
        if self._working_set.has_ready(area):
            return True
        if self._resting.is_empty:
            return False
        due_at = self._resting.next_due(area)
        return due_at is not None and due_at <= self._now()

    def fire(self, areas: Collection[Area]) -> None:
        """Fire the waiters of these areas."""
        self._on_news()
        for area in areas:
            self._fire(area)

    def fire_ready(self, touched: Collection[Area] = ()) -> None:
        """Fire the waiters of these areas, and of areas in which entries are ready."""
        self._on_news()
        for area, waiting in self._waiting.items():
            if waiting and (area in touched or self._has_ready(area)):
                self._fire(area)

    def _fire(self, area: Area) -> None:
        waiting, self._waiting[area] = self._waiting[area], {}
        for deferred in waiting:
            if not deferred.called:  # a waiter that fired before may have cancelled it
                deferred.callback(None)


def _nothing() -> None:
    """Nobody listens."""
