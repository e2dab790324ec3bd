"""A message, a share or a partition, from the stores. It is read as it is: what does not check is printed cell by cell.

*Not here*: triggers. The broker shows a message only to who consumes it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from typing import TextIO
from uuid import UUID

from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId, format_spool_id, parse_spool_id
from mailismus.queue.providers.distributed.browse.partition import whole_pages_of
from mailismus.queue.providers.distributed.dump.cells import entry_text, mark_text, row_text, share_lines, time_text
from mailismus.queue.providers.distributed.format.due import due_share, slot_key
from mailismus.queue.providers.distributed.format.names import parse_name, share_name
from mailismus.queue.providers.distributed.format.share import Share, ShareName, SharePlace, place_of, read_shares
from mailismus.queue.providers.distributed.format.tables import DELETED, DUE, ENQUEUED
from mailismus.queue.providers.distributed.hand.reading import rows_of
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.look import LookTerms, SharedLook, look_at
from mailismus.queue.providers.distributed.stores.rows import Row
from mailismus.queue.providers.distributed.stores.stores import Stores


def dump_stored(reached: IReached, terms: LookTerms, name: str, out: TextIO) -> None:
    """Print what lies under a name. Raises `StartError`: 65 where nothing does, 75 for a store that fails."""
    lines = _lines_of(reached.stores, terms, name)
    while (line := reached.wait(_next(lines))) is not None:
        out.write(line + "\n")


async def _next(lines: AsyncIterator[str]) -> str | None:
    return await anext(lines, None)


async def _lines_of(stores: Stores, terms: LookTerms, name: str) -> AsyncIterator[str]:
    spool_id, meant = parse_spool_id(name), parse_name(name)
    look = await look_at(stores, terms)
    count = 0
    if spool_id is not None:
        lines = _message_lines(stores, look, spool_id)
    elif isinstance(meant, ShareName):
        lines = _share_lines(stores, meant)
    elif isinstance(meant, SharePlace):
        lines = _partition_lines(stores, meant)
    else:
        raise StartError(os.EX_USAGE, f"{name} is no name of the stores: write ID, or AREA/SLICE/BUCKET, or that and /ID")
    async for line in lines:
        count += 1
        yield line
    if not count:
        raise StartError(os.EX_DATAERR, f"{name}: nothing of that name is in the stores")


async def _message_lines(stores: Stores, look: SharedLook, spool_id: SpoolId) -> AsyncIterator[str]:
    indexed = await look.finding.index_of(spool_id)
    names = [name for row in indexed if (name := place_of(row)) is not None] or await look.finding.shares_of(spool_id)
    if indexed or names:
        yield f"message {format_spool_id(spool_id)}: {len(indexed)} index rows"
    for row in indexed:
        named, closed_at = place_of(row), row["closed_at"]
        state = f"closed {time_text(closed_at)}" if isinstance(closed_at, int | float) else "open"
        yield f"  DOES NOT CHECK: {row_text(row)}" if named is None else f"  {share_name(named)}: {state}"
    for name in names:
        async for line in _share_lines(stores, name):
            yield line


async def _share_lines(stores: Stores, name: ShareName) -> AsyncIterator[str]:
    rows = await rows_of(stores.rows, ENQUEUED, name)
    marks = await rows_of(stores.rows, DELETED, name)
    if rows or marks:
        yield f"share {share_name(name)}: {len(rows)} rows, {len(marks)} marks"
    shares = read_shares(name.place, rows).shares
    for row in rows if not shares else ():
        yield f"  DOES NOT CHECK: {row_text(row)}"
    for share in shares:
        for line in _read_lines(share):
            yield line
    for mark in marks:
        yield mark_text(mark)
    for share in shares:
        async for line in _lines_elsewhere(stores, share):
            yield line


def _read_lines(share: Share) -> list[str]:
    return [*share_lines(share), *map(entry_text, share.message.entries)]


async def _lines_elsewhere(stores: Stores, share: Share) -> AsyncIterator[str]:
    """The due row of its own time, and the content."""
    due = due_share(share.name, share.due_at, share.enqueued_at, 0)
    key = (*slot_key(share.name.place.queue_name, due.slot), due.due_at, share.name.enqueue_id)
    row: Row | None = await stores.rows.row(DUE, key)
    if row is not None:
        yield f"  due row of {time_text(due.due_at)}"
    yield f"  content: {await content_text(stores, share)}"


async def content_text(stores: Stores, share: Share) -> str:
    """What was found of the content."""
    found = await stores.objects.get(share.blob.key)
    if found is None:
        return "NOT THERE"
    total, size = hashlib.sha256(), 0
    try:
        while piece := await found.next():
            total.update(piece)
            size += len(piece)
    finally:
        found.close()
    return f"{size} bytes, {'which check' if total.digest() == share.blob.sha256 else 'WHICH DO NOT CHECK'}"


async def _partition_lines(stores: Stores, place: SharePlace) -> AsyncIterator[str]:
    async for page in whole_pages_of(stores.rows, place):
        for name in sorted({*(share.name.enqueue_id for share in page.shares), *page.damaged}, key=_in_order):
            async for line in _share_lines(stores, ShareName(place, name)):
                yield line


def _in_order(name: UUID) -> int:
    return name.int
