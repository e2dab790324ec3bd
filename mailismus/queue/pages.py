"""Pages of a search: what was found beyond a page goes with its cursor; what was found is claimed (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.due.entries import M
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Entry, Filter, Message, Page

CLAIM_MESSAGES = 2000
"""Messages in memory that are looked at for one page of a claim, at most: some milliseconds of the reactor."""


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


def claim_page(page: Page, wanted: Filter, index: DueIndex[M]) -> Page:
    """Return a page of `IQueue.claim` from a page of a search whose entries are in this index by now, and may have changed
    since they were found."""
    messages: list[Message] = []
    out: list[QueueId] = []
    for message in page.messages:
        known = index.messages.get(message.spool_id)
        if known is None:
            continue
        entries: list[Entry] = []
        for number in [entry.number for entry in message.entries]:
            entry = known.entries.get(number)
            if entry is None or wanted.area not in (None, entry.area) or not wanted.matches(known.message, entry):
                continue
            queue_id = QueueId(message.spool_id, number)
            if index.claim(queue_id):
                entries.append(entry)
            else:
                out.append(queue_id)
        if entries:
            messages.append(attrs.evolve(known.message, entries=entries))
    return attrs.evolve(page, messages=tuple(messages), out=tuple(out))
