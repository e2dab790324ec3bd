"""A noted entry: one of which the running server said why it is still in the queue (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from mailismus.queue.interface import Entry
from mailismus.queue.waiting import Waiting


@attrs.define
class NotedEntry(Entry):
    """An entry with a note. Only listings have them: the queue keeps none."""

    note: bytes = b""
    """Why it waits, or where it is under way."""
    hold: str = ""
    """The same in a word."""

    @classmethod
    def of(cls, entry: Entry, waiting: Waiting) -> NotedEntry:
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
            waiting.sentence,
            waiting.hold,
        )


class Known(NamedTuple):
    """What is known of a domain without entries, in sentences."""

    lines: Sequence[bytes]
