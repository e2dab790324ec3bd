"""The settings in force, once a start has adopted them."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.queue.providers.distributed.view.change import ReadingView, ViewSettings, reading_view
from mailismus.queue.providers.distributed.view.history import ViewHistory


class CurrentView:
    """The settings of one server. `wanted`: those of its configuration."""

    def __init__(self, history: ViewHistory, wanted: ViewSettings) -> None:
        self._history, self._wanted = history, wanted
        self._known: Sequence[ViewSettings] = [wanted]

    async def adopt(self) -> None:
        """Begin to use them. Raises `StartError` (78) where the history forbids them, `NotDone`."""
        self._known = await self._history.adopt(self._wanted)

    async def look(self) -> None:
        """Learn the settings that there were, and add none: the queue is read. Raises `NotDone`."""
        self._known = await self._history.versions() or self._known

    def writing(self) -> ViewSettings:
        """By which rows are put in."""
        return self._wanted

    def reading(self) -> ReadingView:
        """By which all rows are found."""
        return reading_view(self._known)

    def bucket_counts(self) -> list[int]:
        """All numbers of buckets that ever were."""
        return sorted({view.bucket_count for view in self._known})
