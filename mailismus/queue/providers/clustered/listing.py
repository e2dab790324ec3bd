"""Looking at the young index: counts and pages. Moves, seals and locks nothing."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, AreaCount, Entry, Filter, Message, Page, Summary
from mailismus.queue.providers.clustered.young import YoungIndex, YoungMessage


def summarize(index: YoungIndex) -> Summary:
    """Counts of every area. A message with entries in two areas counts in both."""
    counts = {area: [0, 0, 0] for area in Area}
    for young in list(index.messages.values()):
        seen = set()
        for entry in list(young.entries.values()):
            counts[entry.area][0] += 1
            seen.add(entry.area)
        for area in seen:
            counts[area][1] += 1
            counts[area][2] += young.message.size_bytes
    return Summary({area: AreaCount(*numbers) for area, numbers in counts.items()}, exact=True)


def search_page(index: YoungIndex, wanted: Filter, after: object | None, limit: int) -> Page:
    """At most `limit` matching entries behind the cursor, the queue id of the last entry given."""
    messages: list[Message] = []
    room = limit
    cursor = after if isinstance(after, QueueId) else None
    for young in _candidates(index, wanted, cursor):
        spool_id = young.message.spool_id
        first = cursor.number + 1 if cursor is not None and cursor.spool_id == spool_id else 1
        found = _matching(young, wanted, first)
        if found:
            messages.append(attrs.evolve(young.message, entries=found[:room]))
            if len(found) >= room:
                return Page(tuple(messages), QueueId(spool_id, found[room - 1].number))
            room -= len(found)
    return Page(tuple(messages), None)


def _candidates(index: YoungIndex, wanted: Filter, cursor: QueueId | None) -> Iterator[YoungMessage]:
    if wanted.spool_id is None:
        yield from index.walk(cursor.spool_id if cursor is not None else SpoolId(0))
    elif cursor is None or wanted.spool_id >= cursor.spool_id:
        young = index.messages.get(wanted.spool_id)
        if young is not None:
            yield young


def _matching(young: YoungMessage, wanted: Filter, first: int) -> list[Entry]:
    """Copies: what is listed does not change under whoever prints it."""
    return [
        attrs.evolve(entry)
        for number, entry in sorted(young.entries.items())
        if number >= first and (wanted.area is None or entry.area is wanted.area) and wanted.matches(young.message, entry)
    ]
