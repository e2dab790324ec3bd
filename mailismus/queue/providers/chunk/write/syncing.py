"""Syncing: makes the barriers of one queue's batches durable, each in the way that is expected to take the least time."""

from __future__ import annotations

from collections.abc import Callable

from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.directories import AnyDirectories
from mailismus.queue.providers.chunk.write.ways import SyncWay, WayChoice


class BatchSyncing:
    """`seconds`: a clock that does not jump, read in the worker too."""

    def __init__(self, directories: AnyDirectories, seconds: Callable[[], float], choice: WayChoice | None = None) -> None:
        self._seconds = seconds
        self._choice = choice or WayChoice(seconds(), has_whole=directories.file_system is not None)

    def sync(self, barrier: Barrier) -> None:
        """Make it durable. Raises OSError: then none of it can be trusted to be."""
        if not barrier.count:
            return
        began = self._seconds()
        way = self._choice.choose(barrier.count, began)
        try:
            barrier.sync(way)
        except OSError:
            if way is SyncWay.WHOLE:
                self._choice.distrust(self._seconds())
            raise
        now = self._seconds()
        self._choice.note(way, barrier.count, now - began, now)
