"""Batch events: reports the end of batches to a listener that is made later.

`GroupCommit` needs its two callbacks when it is made; the listener needs `GroupCommit`. This object is made before both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mailismus.journal.commit import IItem


class IBatchListener(Protocol):
    """Listener to the end of batches."""

    def on_durable(self) -> None:
        """A batch is durable, and each of its items has been told."""

    def on_failed(self) -> Sequence[IItem]:
        """A barrier failed. Return the items that rewrite the live messages of that segment."""


class BatchEvents:
    """Events of one journal. No batch may end before `listen`."""

    def __init__(self) -> None:
        self._listeners: list[IBatchListener] = []

    def listen(self, listener: IBatchListener) -> None:
        """Add a listener."""
        self._listeners.append(listener)

    def on_durable(self) -> None:
        """See `IBatchListener`."""
        for listener in self._listeners:
            listener.on_durable()

    def on_failed(self) -> list[IItem]:
        """See `IBatchListener`."""
        return [item for listener in self._listeners for item in listener.on_failed()]
