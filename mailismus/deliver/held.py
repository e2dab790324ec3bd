"""Held entries: how many entries are taken and not yet settled or given back, and how many more may be. Pure."""

from __future__ import annotations

from collections.abc import Callable


class HeldEntries:
    """Counts the entries that the task holds. The code that settles or gives back entries calls `free`."""

    def __init__(self) -> None:
        self.count = 0
        """Entries taken and not yet settled or given back."""
        self._limit = 0
        self._wanted = 0
        """Room that is waited for; 0: none."""
        self._on_room: Callable[[], None] | None = None

    def set_limit(self, limit: int) -> None:
        """Set how many entries may be held from now on."""
        self._limit = limit

    def room(self) -> int:
        """Return how many more may be held; negative after a reload that lowered the limit."""
        return self._limit - self.count

    def wait_for(self, room: int, on_room: Callable[[], None]) -> None:
        """Call `on_room` once, as soon as entries are freed and so many more may be held. Replaces an earlier wish."""
        self._wanted, self._on_room = room, on_room

    def add(self, count: int) -> None:
        """Count entries that were taken."""
        self.count += count

    def drop(self, count: int) -> None:
        """Stop counting entries that were settled while they were taken: nothing is called."""
        self.count -= count

    def free(self, count: int) -> None:
        """Stop counting entries that were settled or given back: others may be taken."""
        self.count -= count
        if self._wanted and self._limit - self.count >= self._wanted and self._on_room is not None:
            self._wanted = 0
            self._on_room()
