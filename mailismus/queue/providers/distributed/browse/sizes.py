"""How much is in the whole queue, for metrics: counted now and then, so that reading a metric asks no service."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.interface import Area, Summary
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

EACH_S = 10.0


class QueueSizes:
    """Entries by area, as they were counted last. `count`: counts by rows. `is_wanted` False: nothing is counted."""

    _log = Logger()

    def __init__(self, count: Callable[[], Deferred[Summary]], reactor: IReactorTime, *, is_wanted: bool) -> None:
        self._count, self._reactor, self._is_wanted = count, reactor, is_wanted
        self._is_counting = self._is_closed = False
        self.entries: Mapping[Area, int] = {}
        """Empty: they are not known."""

    def start(self) -> None:
        """Count, and go on counting."""
        if self._is_closed or not self._is_wanted:
            return
        self._reactor.callLater(EACH_S, self.start)
        if not self._is_counting:
            self._is_counting = True
            self._count().addCallbacks(self._counted, self._not_counted)

    def close(self) -> None:
        """Count no more."""
        self._is_closed = True

    def _counted(self, summary: Summary) -> None:
        self._is_counting = False
        self.entries = {area: count.entries for area, count in summary.areas.items()}

    def _not_counted(self, failure: Failure) -> None:
        self._is_counting = False
        self.entries = {}
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("the queue can't be counted", failure)
