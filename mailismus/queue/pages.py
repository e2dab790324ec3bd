"""Pages of a search: what was found beyond a page goes with its cursor (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.queue.interface import Message


def count_entries(messages: Sequence[Message]) -> int:
    """Return the number of entries."""
    return sum(len(message.entries) for message in messages)


def split_page(messages: Sequence[Message], count: int) -> tuple[list[Message], list[Message]]:
    """Return the messages with the first `count` entries, and those with the others."""
    first: list[Message] = []
    for at, message in enumerate(messages):
        if len(message.entries) > count:
            rest = [attrs.evolve(message, entries=message.entries[count:]), *messages[at + 1 :]]
            return [*first, *([attrs.evolve(message, entries=message.entries[:count])] if count else [])], rest
        first.append(message)
        count -= len(message.entries)
    return first, []
