"""Batch events: tells a listener that is made later how batches ended.

`GroupCommit` needs its two callbacks when it is made; their owner needs `GroupCommit`. This object is made before both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mailismus.journal.commit import IItem


class IBatchListener(Protocol):
    """Hears how batches ended."""

    def on_durable(self) -> None:
        """A batch is durable, and each of its items has been told."""

    def on_failed(self) -> Sequence[IItem]:
        """A barrier failed. Return the items that rewrite what is live in that segment."""


class BatchEvents:
    """Events of one journal. No batch may end before `listen`."""

    def __init__(self) -> None:
        self._listeners: list[IBatchListener] = []

    def listen(self, listener: IBatchListener) -> None:
        """Tell this one, too."""
        self._listeners.append(listener)

    def on_durable(self) -> None:
        """See `IBatchListener`."""
        for listener in self._listeners:
            listener.on_durable()

    def on_failed(self) -> list[IItem]:
        """See `IBatchListener`."""
        return [item for listener in self._listeners for item in listener.on_failed()]
