"""A message of the queue in memory, with its content."""

from __future__ import annotations

from collections import Counter

from mailismus.queue.due.entries import DueMessage
from mailismus.queue.interface import Message


class StoredMessage(DueMessage):
    """One message, its entries, and the number of pending settlements of each: such an entry is out until the last."""

    __slots__ = ("content", "settling")

    def __init__(self, message: Message, content: bytes) -> None:
        super().__init__(message)
        self.content = content
        self.settling: Counter[int] = Counter()
