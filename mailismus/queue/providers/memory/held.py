"""What the queue in memory holds: messages with their contents, and an entry a line."""

from __future__ import annotations

import attrs

from mailismus.queue.interface import Entry, Message


@attrs.define(eq=False)
class StoredEntry:
    """An entry with what the provider alone knows of it. `ticket` names its one valid place in a heap; 0: in none."""

    held: StoredMessage
    entry: Entry
    ticket: int = 0
    wake_at: float = 0.0
    is_out: bool = False
    settles_under_way: int = 0


@attrs.define(eq=False)
class StoredMessage:
    """A message, its content and its lines by number. `out` counts the lines that are handed out."""

    message: Message
    content: bytes
    lines: dict[int, StoredEntry] = attrs.Factory(dict)
    out: int = 0
