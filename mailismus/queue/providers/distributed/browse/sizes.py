"""How much is in the whole queue, for metrics: counted now and then, so that reading a metric asks no service."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.interface import Area, Summary
from mailismus.queue.providers.distributed.regular import Regular

EACH_S = 10.0


class QueueSizes:
    """Entries by area, as they were counted last. `count`: counts by rows. `is_wanted` False: nothing is counted."""

    def __init__(self, count: Callable[[], Deferred[Summary]], reactor: IReactorTime, *, is_wanted: bool) -> None:
        self._count_all, self._is_wanted = count, is_wanted
        self._counting = Regular(EACH_S, reactor, "the queue can't be counted")
        self.entries: Mapping[Area, int] = {}
        """Empty: they are not known."""

    def start(self) -> None:
        """Count, and go on counting."""
        if self._is_wanted:
            self._counting.start(self._count)

    def close(self) -> None:
        """Count no more."""
        self._counting.close()

    async def _count(self) -> None:
        try:
            summary = await self._count_all()
        except Exception:
            self.entries = {}
            raise
        self.entries = {area: count.entries for area, count in summary.areas.items()}
