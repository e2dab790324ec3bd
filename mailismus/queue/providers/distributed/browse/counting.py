"""Counts of all areas: from the rows of counts; or from all that lives, which costs what a search of all costs."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, AreaCount, Gap, Summary
from mailismus.queue.providers.distributed.browse.overlay import entries_of
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.counts.keeping import CountKeeping
from mailismus.queue.providers.distributed.counts.numbers import Numbers
from mailismus.queue.providers.distributed.counts.stored import (
    gone_servers,
    is_doubted,
    rows_of_area,
    servers_of,
    sum_of,
)
from mailismus.queue.providers.distributed.format.tables import SERVERS
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.stores.rows import IRows


async def count_by_rows(rows: IRows, starts: Starts, keeping: CountKeeping | None, refusing: str) -> Summary:
    """As `IQueue.summary`, of what servers wrote down, and of what this one has in memory. `exact` False: something is to
    be recounted. Raises `NotDone`."""
    servers = await servers_of(rows)
    live = await live_epochs(rows)
    is_sure = not gone_servers(servers, live)
    areas = {}
    for area in Area:
        slots = await rows_of_area(rows, area.value, starts.browse_start(area))
        if keeping is not None:
            for slot, own in keeping.slots.items():
                if slot[0] == area.value and slot[1] >= starts.browse_start(area):
                    slots.setdefault(slot, {})[keeping.epoch] = own.row(slot, keeping.epoch)
        total = Numbers()
        for slot_rows in slots.values():
            total = total + sum_of(slot_rows)
            is_sure = is_sure and not is_doubted(slot_rows)
        areas[area] = AreaCount(max(0, total.entries), max(0, total.messages), max(0, total.stored_bytes))
    return Summary(areas, is_sure, (), refusing)


async def live_epochs(rows: IRows) -> set[int]:
    """The epochs that have leases. Raises `NotDone`."""
    return {row["epoch"] for row in await rows.all_rows(SERVERS) if row["name"] and isinstance(row["epoch"], int)}


async def count_all(rows: IRows, hand: Hand, starts: Starts, now: float, refusing: str) -> Summary:
    """As `IQueue.summary`: everything that lives is read. Raises `NotDone`."""
    areas, gaps = {}, list[Gap]()
    for area in Area:
        entries = stored_bytes = 0
        seen: set[SpoolId] = set()
        async for living in starts.living(area, now, gaps):
            here = len(entries_of(living, hand))
            message = living.share.message
            entries += here
            if here and message.spool_id not in seen:
                seen.add(message.spool_id)
                stored_bytes += message.stored_bytes
        areas[area] = AreaCount(entries, len(seen), stored_bytes)
    return Summary(areas, True, tuple(gaps), refusing)
