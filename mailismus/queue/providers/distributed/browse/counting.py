"""Counts of all areas: everything that lives is read. It costs what a search of all costs."""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, AreaCount, Summary
from mailismus.queue.providers.distributed.browse.overlay import entries_of
from mailismus.queue.providers.distributed.browse.partition import pages_of
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.share import SharePlace
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.stores.rows import IRows


async def count_all(rows: IRows, hand: Hand, starts: Starts, now: float, refusing: str) -> Summary:
    """As `IQueue.summary`. Raises `NotDone`."""
    areas, gaps = {}, []
    for area in Area:
        entries = stored_bytes = 0
        seen: set[SpoolId] = set()
        for place in _places(starts, area, now):
            async for page in pages_of(rows, place):
                for living in page.shares:
                    here = len(entries_of(living, hand))
                    message = living.share.message
                    entries += here
                    if here and message.spool_id not in seen:
                        seen.add(message.spool_id)
                        stored_bytes += message.stored_bytes
                if page.gap is not None:
                    gaps.append(page.gap)
        areas[area] = AreaCount(entries, len(seen), stored_bytes)
    return Summary(areas, True, tuple(gaps), refusing)


def _places(starts: Starts, area: Area, now: float) -> Iterator[SharePlace]:
    for start in starts.slices(area, now):
        yield from starts.places(area, start)
