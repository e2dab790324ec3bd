"""Held entries: how many entries are taken and not yet settled or given back, and how many more may be. Pure."""

from __future__ import annotations

from collections.abc import Callable


class HeldEntries:
    """Counts the entries that the task holds. The code that settles or gives back entries calls `free`."""

    def __init__(self) -> None:
        self.count = 0
        """Entries taken and not yet settled or given back."""
        self._limit = 0
        self._on_free: Callable[[], None] | None = None

    def set_limit(self, limit: int) -> None:
        """Set how many entries may be held from now on."""
        self._limit = limit

    def listen(self, on_free: Callable[[], None]) -> None:
        """Call this each time that entries are freed."""
        self._on_free = on_free

    def room(self) -> int:
        """Return how many more may be held; negative after a reload that lowered the limit."""
        return self._limit - self.count

    def add(self, count: int) -> None:
        """Count entries that were taken."""
        self.count += count

    def drop(self, count: int) -> None:
        """Stop counting entries that were settled while they were taken: the listener is not called."""
        self.count -= count

    def free(self, count: int) -> None:
        """Stop counting entries that were settled or given back, and call the listener: others may be taken."""
        self.count -= count
        if self._on_free is not None:
            self._on_free()
