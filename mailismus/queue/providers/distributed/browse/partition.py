"""What lives in a partition, a page of shares at a time: rows, then the marks of these shares."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import attrs

from mailismus.queue.interface import Entry
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
    """Shares of which entries live. `after`: behind which id the next page begins; None: it was the last. `damaged`: ids of
    shares that can't be read."""

    shares: tuple[LivingShare, ...]
    after: UUID | None
    damaged: tuple[UUID, ...]


async def read_page(rows: IRows, place: SharePlace, after: UUID | None) -> PartitionPage:
    """The page behind a share. Raises `NotDone`."""
    found = await rows.rows(ENQUEUED, place.key, None if after is None else (after, 1 << 30), PAGE)
    if not found:
        return PartitionPage((), None, ())
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
    return PartitionPage(tuple(shares), None if is_last else last, read.damaged)


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
