"""Lines of senders that were passed over in a take: their shares were used up (`IQueue.take`). Pure.

    refused -> a line of messages for each sender --wake--> asked about again -> taken, or refused again

*Rules*: nothing of a line is looked at before `wake`, and then its first message alone until that has gone. Messages of a
sender take turns: one that got a part of what it wanted goes to the end of the line.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from mailismus.mail.ids import SpoolId

T = TypeVar("T")


class PassedOver(Generic[T]):
    """The lines of one area. `T`: what there is to take of a message."""

    __slots__ = ("lines", "woken")

    def __init__(self) -> None:
        self.lines: dict[bytes, OrderedDict[SpoolId, T]] = {}
        """The line of each sender, none of them empty; those that have waited longest first. Read only."""
        self.woken: dict[bytes, None] = {}
        """The senders that may be asked about again. Read only."""

    def add(self, sender: bytes, spool_id: SpoolId, item: T) -> None:
        """Append a message to the line of its sender."""
        line = self.lines.get(sender)
        if line is None:
            line = self.lines[sender] = OrderedDict()
        line[spool_id] = item

    def remove(self, sender: bytes, spool_id: SpoolId) -> bool:
        """Remove a message. Return whether it was there."""
        line = self.lines.get(sender)
        if line is None or line.pop(spool_id, None) is None:
            return False
        if not line:
            del self.lines[sender]
            self.woken.pop(sender, None)
        return True

    def wake(self) -> bool:
        """Let all senders be asked about again. Return whether there are any."""
        self.woken = dict.fromkeys(self.lines)
        return bool(self.woken)

    def first(self, sender: bytes) -> T | None:
        """The first message of the sender's line; None: it has none."""
        line = self.lines.get(sender)
        return next(iter(line.values())) if line else None

    def refuse(self, sender: bytes, *, is_next: bool) -> None:
        """Leave the sender alone until the next `wake`. `is_next`: its first message got something, and the next one is
        first now."""
        self.woken.pop(sender, None)
        if is_next:
            line = self.lines[sender]
            line.move_to_end(next(iter(line)))

    def move_to_end(self, sender: bytes) -> None:
        """Let the other senders come first in the next take."""
        line = self.lines.pop(sender, None)
        if line is not None:
            self.lines[sender] = line
            if sender in self.woken:
                del self.woken[sender]
                self.woken[sender] = None
