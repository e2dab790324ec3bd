"""Counts and pages of the entries in memory (pure)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, AreaCount, Entry, Filter, Message, Page, Summary
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet


def summarize(working_set: WorkingSet, refusing: str) -> Summary:
    """Return the counts of all entries. `refusing`: as in `Summary`."""
    counts = {area: [0, 0, 0] for area in Area}
    for known in working_set.messages.values():
        for area in {entry.area for entry in known.entries.values()}:
            counts[area][1] += 1
            counts[area][2] += known.message.stored_bytes
        for entry in known.entries.values():
            counts[entry.area][0] += 1
    return Summary({area: AreaCount(*count) for area, count in counts.items()}, True, (), refusing)


def find(working_set: WorkingSet, wanted: Filter, after: object | None, limit: int) -> Page:
    """As `IQueue.search`. `after`: the queue id of the last returned entry."""
    last = after if isinstance(after, QueueId) else QueueId(SpoolId(0), 0)
    found: list[Message] = []
    for known in _candidates(working_set, wanted, last.spool_id):
        entries: list[Entry] = []
        spool_id = known.message.spool_id
        for number, entry in sorted(known.entries.items()):
            if (spool_id, number) <= last or (wanted.area is not None and entry.area is not wanted.area):
                continue
            if wanted.matches(known.message, entry):
                entries.append(entry)
        if entries:
            found.append(attrs.evolve(known.message, entries=entries[:limit]))
            limit -= len(entries[:limit])
            if not limit:
                return Page(tuple(found), QueueId(spool_id, found[-1].entries[-1].number))
    return Page(tuple(found), None)


def _candidates(working_set: WorkingSet, wanted: Filter, first: SpoolId) -> Iterator[LogMessage]:
    if wanted.spool_id is None:
        yield from working_set.messages_from(first)
    elif wanted.spool_id >= first and (known := working_set.messages.get(wanted.spool_id)) is not None:
        yield known
