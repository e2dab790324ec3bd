"""Listeners: tasks that wait for entries of an area, woken by the provider or the manager.

The provider fires for entries that may be taken now. The manager wakes listeners for a settled entry that becomes due sooner
than they expect, and for rounds that are over.
"""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.queue.interface import Area, IQueue


@attrs.define(eq=False)
class _Listener:
    """One waiting task. `fires`: its Deferred; `asked`: the provider's; `next_due`: the next due time that the task
    knows."""

    fires: Deferred[None]
    asked: Deferred[None]
    next_due: float | None


class Listeners:
    """Listeners of one queue, by area."""

    def __init__(self, provider: IQueue) -> None:
        self._provider = provider
        self._waiting: dict[Area, list[_Listener]] = {area: [] for area in Area}

    def add(self, area: Area) -> Deferred[None]:
        """Fires as `IQueue.ready` does, or by `wake` or `wake_all`."""
        asked = self._provider.ready(area)
        if asked.called:
            return asked
        fires: Deferred[None] = Deferred(lambda _: asked.cancel())
        listener = _Listener(fires, asked, self._provider.next_due(area))
        self._waiting[area].append(listener)
        asked.addCallbacks(self._on_ready, self._on_failed, callbackArgs=(area, listener), errbackArgs=(area, listener))
        return fires

    def wake(self, area: Area, due_at: float, now: float) -> None:
        """Wake the listeners that expect the next due entry later than this one, or know only a time that is past."""
        for listener in list(self._waiting[area]):
            known = listener.next_due
            if known is None or known <= now or due_at < known:
                self._fire(area, listener)

    def wake_all(self, area: Area) -> None:
        """Wake all listeners of the area: entries that the provider does not offer may be taken."""
        for listener in list(self._waiting[area]):
            self._fire(area, listener)

    def _fire(self, area: Area, listener: _Listener) -> None:
        self._waiting[area].remove(listener)
        listener.asked.cancel()
        listener.fires.callback(None)

    def _on_ready(self, _: None, area: Area, listener: _Listener) -> None:
        self._waiting[area].remove(listener)
        listener.fires.callback(None)

    def _on_failed(self, failure: Failure, area: Area, listener: _Listener) -> None:
        if listener in self._waiting[area]:  # otherwise `_fire` cancelled
            self._waiting[area].remove(listener)
            listener.fires.errback(failure)
