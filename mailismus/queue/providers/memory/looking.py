"""Counts of the queue in memory, and a search page by page (pure)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, AreaCount, Entry, Filter, Message, Page, Summary
from mailismus.queue.providers.memory.held import StoredMessage


def summarize(held_messages: Iterable[StoredMessage]) -> Summary:
    """Return the counts of all entries."""
    counts = {area: [0, 0, 0] for area in Area}
    for held in held_messages:
        seen: set[Area] = set()
        for entry in held.entries.values():
            area = entry.area
            counts[area][0] += 1
            if area not in seen:
                seen.add(area)
                counts[area][1] += 1
                counts[area][2] += held.message.stored_bytes
    return Summary({area: AreaCount(*count) for area, count in counts.items()}, True)


def find(
    held_messages: Mapping[SpoolId, StoredMessage],
    order: Sequence[SpoolId],
    wanted: Filter,
    after: object | None,
    limit: int,
) -> Page:
    """As `IQueue.search`. `order`: the spool ids, sorted. `after`: spool id and number of the last returned entry, and the
    highest spool id when the search began: it does not run after new mail."""
    last, newest = (0, 0), order[-1] if order else SpoolId(0)
    spool_ids = order
    if after is not None:
        assert isinstance(after, tuple)
        last, newest = after[:2], after[2]
        spool_ids = order[bisect_left(order, SpoolId(last[0])) : bisect_right(order, newest)]
    if wanted.spool_id is not None:
        at = bisect_left(spool_ids, wanted.spool_id)
        spool_ids = spool_ids[at : bisect_right(spool_ids, wanted.spool_id)]
    found: list[Message] = []
    cursor: object | None = None
    for spool_id in spool_ids:
        held = held_messages[spool_id]
        entries: list[Entry] = []
        is_full = False
        for number, entry in sorted(held.entries.items()):
            if (spool_id, number) <= last or (wanted.area is not None and entry.area is not wanted.area):
                continue
            if not wanted.matches(held.message, entry):
                continue
            if len(entries) == limit:
                is_full = True
                break
            entries.append(entry)
            cursor = (spool_id, number, newest)
        limit -= len(entries)
        if entries:
            found.append(attrs.evolve(held.message, entries=entries))
        if is_full:
            return Page(tuple(found), cursor)
    return Page(tuple(found), None)
