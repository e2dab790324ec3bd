"""What lives in a partition, a page of shares at a time: rows, then the marks of these shares."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import attrs

from mailismus.queue.interface import Entry, Gap
from mailismus.queue.providers.distributed.format.marks import Marks
from mailismus.queue.providers.distributed.format.share import Share, SharePlace, read_shares
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


async def pages_of(rows: IRows, place: SharePlace, after: UUID | None = None) -> AsyncIterator[PartitionPage]:
    """The pages of a partition, or those behind a share. Raises `NotDone`."""
    while True:
        page = await _read_page(rows, place, after)
        yield page
        after = page.after
        if after is None:
            return


async def _read_page(rows: IRows, place: SharePlace, after: UUID | None) -> PartitionPage:
    found = await rows.rows(ENQUEUED, place.key, None if after is None else (after, 1 << 30), PAGE)
    if not found:
        return PartitionPage((), None, None)
    last = _id_of(found[-1])
    is_last = len(found) < PAGE
    if not is_last:
        found = [row for row in found if row["enqueue_id"] != last]  # the rest of its rows is behind the page
    first, last = _id_of(found[0]), _id_of(found[-1])
    marks = Marks(await _marks_between(rows, place, first, last))
    read = read_shares(place, found)
    shares = []
    for share in read.shares:
        name = share.name.enqueue_id
        entries = tuple(entry for entry in share.message.entries if marks.of(name, entry.number) is None)
        if entries:
            shares.append(LivingShare(share, entries, marks.is_any_moved(name)))
    return PartitionPage(tuple(shares), None if is_last else last, _gap(place, read.damaged))


def _gap(place: SharePlace, damaged: Sequence[UUID]) -> Gap | None:
    if not damaged:
        return None
    path = f"{place.queue_name} {place.slice_start:.0f} {place.bucket} {damaged[0]}"
    return Gap("share", "its rows are damaged", len(damaged), path)


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
