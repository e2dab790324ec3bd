"""An entry that is out for delivery and does not move, as the running server tells of it (pure)."""

from __future__ import annotations

import attrs

from mailismus.queue.interface import Entry


@attrs.define
class StuckEntry(Entry):
    """Such an entry. Only a listing has them: the queue keeps none."""

    note: bytes = b""
    """What it waits for, in words for people."""

    @classmethod
    def of(cls, entry: Entry, note: bytes) -> StuckEntry:
        """The same entry, with this note."""
        return cls(entry.number, entry.recipient, entry.area, entry.due_at, entry.attempts, entry.reply, entry.host, note)
