"""What lives in a partition, a page of shares at a time: rows, then the marks of these shares."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import attrs

from mailismus.queue.interface import Entry, Gap
from mailismus.queue.providers.distributed.format.marks import WHOLE, Marks
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import Share, ShareName, SharePlace, read_shares
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import SHARE_ENTRIES
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Row

PAGE = 2 * (SHARE_ENTRIES + 1)
"""Rows: a page has one whole share at least."""


@attrs.frozen
class LivingShare:
    """A share with the entries that no mark ends."""

    share: Share
    entries: tuple[Entry, ...]
    is_split: bool


@attrs.frozen
class PartitionPage:
    """Shares of which entries live. `after`: behind which id the next page begins; None: it was the last. `gap`: what can't
    be read of it, if anything."""

    shares: tuple[LivingShare, ...]
    after: UUID | None
    gap: Gap | None


@attrs.frozen
class WholePage:
    """All shares of a page, with their marks. `damaged`: those of which rows are missing or malformed, and that are not over
    as a whole."""

    shares: tuple[Share, ...]
    damaged: tuple[UUID, ...]
    marks: Marks
    after: UUID | None


async def pages_of(
    rows: IRows, place: SharePlace, after: UUID | None = None, first_rows: int = PAGE
) -> AsyncIterator[PartitionPage]:
    """The pages of a partition, or those behind a share. `first_rows`: of the first page, at most. Raises `NotDone`."""
    async for page in whole_pages_of(rows, place, after, first_rows):
        living = (living_of(share, page.marks) for share in page.shares)
        shares = tuple(share for share in living if share.entries)
        yield PartitionPage(shares, page.after, _gap(place, page.damaged))


def living_of(share: Share, marks: Marks) -> LivingShare:
    """A share with what lives of it."""
    name = share.name.enqueue_id
    entries = tuple(entry for entry in share.message.entries if marks.of(name, entry.number) is None)
    return LivingShare(share, entries, marks.is_any_moved(name))


async def whole_pages_of(
    rows: IRows, place: SharePlace, after: UUID | None = None, first_rows: int = PAGE
) -> AsyncIterator[WholePage]:
    """The same pages, with what is over. Raises `NotDone`."""
    limit = min(PAGE, first_rows)
    while True:
        page = await _read_page(rows, place, after, limit)
        yield page
        after, limit = page.after, PAGE
        if after is None:
            return


async def _read_page(rows: IRows, place: SharePlace, after: UUID | None, limit: int) -> WholePage:
    found = await rows.rows(ENQUEUED, place.key, None if after is None else (after, 1 << 30), limit)
    if not found:
        return WholePage((), (), Marks(()), None)
    last = _id_of(found[-1])
    is_last = len(found) < limit
    if not is_last and _id_of(found[0]) == last and limit < PAGE:  # a share of more rows
        return await _read_page(rows, place, after, PAGE)
    if not is_last:
        found = [row for row in found if row["enqueue_id"] != last]  # the rest of its rows is behind the page
    first, last = _id_of(found[0]), _id_of(found[-1])
    marks = Marks(await _marks_between(rows, place, first, last))
    read = read_shares(place, found)
    damaged = tuple(name for name in read.damaged if marks.of(name, WHOLE) is None)
    return WholePage(read.shares, damaged, marks, None if is_last else last)


def _gap(place: SharePlace, damaged: Sequence[UUID]) -> Gap | None:
    if not damaged:
        return None
    return Gap("share", "its rows are damaged", len(damaged), share_name(ShareName(place, damaged[0])))


async def _marks_between(rows: IRows, place: SharePlace, first: UUID, last: UUID) -> Sequence[Row]:
    found: list[Row] = []
    after: Key = (first, -1)
    while True:
        page = await rows.rows(DELETED, place.key, after, PAGE)
        found += [row for row in page if _id_of(row).int <= last.int]
        if len(page) < PAGE or _id_of(page[-1]).int > last.int:
            return found
        after = (page[-1]["enqueue_id"], page[-1]["number"])


def _id_of(row: Row) -> UUID:
    name = row["enqueue_id"]
    assert isinstance(name, UUID), "a column of the key"
    return name
