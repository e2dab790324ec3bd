"""A stuck entry: out for delivery without progress, as the running server reports it (pure)."""

from __future__ import annotations

import attrs

from mailismus.queue.interface import Entry


@attrs.define
class StuckEntry(Entry):
    """A stuck entry. Only listings have them: the queue keeps none."""

    note: bytes = b""
    """The reason, in plain words."""

    @classmethod
    def of(cls, entry: Entry, note: bytes) -> StuckEntry:
        """Return the same entry with this note."""
        return cls(
            entry.number,
            entry.recipient,
            entry.area,
            entry.due_at,
            entry.attempts,
            entry.reply,
            entry.host,
            entry.words,
            note,
        )
