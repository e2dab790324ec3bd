"""A noted entry: one of which the running server said why it is still in the queue (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Entry, Message
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


def noted(message: Message, waiting: Mapping[QueueId, Waiting]) -> Message:
    """Return a message with notes on the entries of which it is known why they wait."""
    if not waiting:
        return message
    entries = [
        entry if (found := waiting.get(QueueId(message.spool_id, entry.number))) is None else NotedEntry.of(entry, found)
        for entry in message.entries
    ]
    return attrs.evolve(message, entries=entries)


class Known(NamedTuple):
    """What is known of a domain without entries, in sentences."""

    lines: Sequence[bytes]
