"""Waiters: Deferreds that fire when entries of an area may be taken (`IQueue.ready`).

*Rules*: a waiter fires once. It may fire for an entry that another task takes first, but an entry of its area that may be
taken never leaves it waiting. A cancelled waiter is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection

from twisted.internet.defer import Deferred, succeed

from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.index.state import QueueState


class ReadyWaiters:
    """Waiters of one queue, by area."""

    def __init__(self, state: QueueState) -> None:
        self._state = state
        self._memtable, self._cluster_index = state.memtable, state.cluster_index
        self._waiting: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}

    def ready(self, area: Area) -> Deferred[None]:
        """As `IQueue.ready`."""
        due_at = self._cluster_index.next_due(area)
        if self._memtable.has_ready(area) or (due_at is not None and due_at <= self._state.now()):
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._waiting[area].pop(gone, None))
        self._waiting[area][waiting] = None
        return waiting

    def count(self, area: Area) -> int:
        """Return the number of waiters of this area."""
        return len(self._waiting[area])

    def fire(self, area: Area) -> None:
        """Fire the waiters of this area."""
        waiting, self._waiting[area] = self._waiting[area], {}
        for deferred in waiting:
            if not deferred.called:  # a waiter that fired before may have cancelled it
                deferred.callback(None)

    def fire_ready(self, touched: Collection[Area] = ()) -> None:
        """Fire the waiters of these areas, and of areas in which entries are ready."""
        for area, waiting in self._waiting.items():
            if waiting and (area in touched or self._memtable.has_ready(area)):
                self.fire(area)

    def fire_due(self) -> None:
        """Fire the waiters of areas with due or waiting entries in clusters: a checkpoint moved entries."""
        for area, waiting in self._waiting.items():
            if waiting and self._cluster_index.next_due(area) is not None:
                self.fire(area)
