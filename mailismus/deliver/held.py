"""Held entries: how many entries are taken and not yet settled or given back, and how many more may be. Pure."""

from __future__ import annotations

from collections.abc import Callable


class HeldEntries:
    """Counts the entries that the task holds. Whoever settles or gives back an entry tells it (`free`)."""

    def __init__(self) -> None:
        self.count = 0
        """Entries taken and not yet settled or given back."""
        self._most = 0
        self._on_free: Callable[[], None] | None = None

    def set_limit(self, most: int) -> None:
        """Hold so many entries at most, from now on."""
        self._most = most

    def listen(self, on_free: Callable[[], None]) -> None:
        """Call this each time that entries are free."""
        self._on_free = on_free

    def room(self) -> int:
        """Return how many more may be held; negative after a reload that lowered the limit."""
        return self._most - self.count

    def add(self, count: int) -> None:
        """So many were taken."""
        self.count += count

    def drop(self, count: int) -> None:
        """So many were settled at once, as they were taken."""
        self.count -= count

    def free(self, count: int) -> None:
        """So many are settled or given back: others may take their place."""
        self.count -= count
        if self._on_free is not None:
            self._on_free()
