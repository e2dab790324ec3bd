"""Who waits for an area of the queue to have something: told by the provider, and by the manager of what it alone knows.

The provider fires for what may be taken now; the manager adds a settled entry that becomes due sooner than who waits
expects, and rounds that are over.
"""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.queue.interface import Area, IQueue


@attrs.define(eq=False)
class _Listener:
    """Somebody who waits for an area: what fires for him, what the provider was asked, and the next time he knows of."""

    fires: Deferred[None]
    asked: Deferred[None]
    next_due: float | None


class Listeners:
    """All who wait, by area."""

    def __init__(self, provider: IQueue) -> None:
        self._provider = provider
        self._waiting: dict[Area, list[_Listener]] = {area: [] for area in Area}

    def add(self, area: Area) -> Deferred[None]:
        """Fires as `IQueue.ready` does, or when `wake` or `wake_all` says so."""
        asked = self._provider.ready(area)
        if asked.called:
            return asked
        fires: Deferred[None] = Deferred(lambda _: asked.cancel())
        listener = _Listener(fires, asked, self._provider.next_due(area))
        self._waiting[area].append(listener)
        asked.addCallbacks(self._on_ready, self._on_deaf, callbackArgs=(area, listener), errbackArgs=(area, listener))
        return fires

    def wake(self, area: Area, due_at: float, now: float) -> None:
        """An entry that becomes due then has come: who expects the next one later, or knows only of one that is past, is
        told."""
        for listener in list(self._waiting[area]):
            known = listener.next_due
            if known is None or known <= now or due_at < known:
                self._tell(area, listener)

    def wake_all(self, area: Area) -> None:
        """Something may be taken that the provider knows nothing of."""
        for listener in list(self._waiting[area]):
            self._tell(area, listener)

    def _tell(self, area: Area, listener: _Listener) -> None:
        self._waiting[area].remove(listener)
        listener.asked.cancel()
        listener.fires.callback(None)

    def _on_ready(self, _: None, area: Area, listener: _Listener) -> None:
        self._waiting[area].remove(listener)
        listener.fires.callback(None)

    def _on_deaf(self, failure: Failure, area: Area, listener: _Listener) -> None:
        if listener in self._waiting[area]:  # otherwise it was `_tell` that cancelled
            self._waiting[area].remove(listener)
            listener.fires.errback(failure)
