"""A share's rows and marks, from the database, and whether it counts.

*Rules*: marks are read before rows. Where the first trigger of new mail has come, its rows are enough, as long as there is
no note of marks in its head. A share that moved from another one counts where the mark of its origin names it, or where
nothing is left of the origin. Where the origin's rows are there without a mark, the batch that wrote both is under way. A
mark that can't be read tells nothing.
"""

from __future__ import annotations

import enum

import attrs

from mailismus.queue.providers.distributed.format.marks import WHOLE, Marks
from mailismus.queue.providers.distributed.format.share import Share, ShareName, read_shares
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import SHARE_ENTRIES
from mailismus.queue.providers.distributed.stores.rows import IRows, Row, RowTable


class Condition(enum.Enum):
    """What was found of a share."""

    LIVES = "lives"
    OVER = "over"
    UNKNOWN = "unknown"
    """Neither rows nor marks."""
    DAMAGED = "damaged"
    UNDER_WAY = "under way"
    ELSEWHERE = "elsewhere"
    """Another server has it."""


@attrs.frozen
class FoundShare:
    """A share as it was found. `lost`: numbers of entries that another share goes on with, though no mark says so here."""

    condition: Condition
    share: Share | None = None
    left: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    is_split: bool = False


async def read_share(rows: IRows, name: ShareName) -> FoundShare:
    """Read a share. Raises `NotDone`."""
    marks = Marks(await rows_of(rows, DELETED, name))
    found = await rows_of(rows, ENQUEUED, name)
    whole = marks.of(name.enqueue_id, WHOLE)
    if not found:
        return FoundShare(Condition.UNKNOWN if whole is None else Condition.OVER)
    shares = read_shares(name.place, found).shares
    if not shares:
        return FoundShare(Condition.DAMAGED if whole is None else Condition.OVER)
    return await _found(rows, shares[0], marks)


async def read_new(rows: IRows, name: ShareName) -> FoundShare:
    """Read a share whose first trigger has come here. Its marks are read where its head says that there are some, and where
    its rows are not what they were. Raises `NotDone`."""
    found = await rows_of(rows, ENQUEUED, name)
    is_marked = any(row["marked_at"] is not None for row in found)
    for share in () if is_marked else read_shares(name.place, found).shares:
        numbers = frozenset(entry.number for entry in share.message.entries)
        if numbers:
            return FoundShare(Condition.LIVES, share, numbers)
    return await read_share(rows, name)


async def read_marks(rows: IRows, share: Share) -> FoundShare:
    """Read what became of a share whose rows are known. Raises `NotDone`."""
    return await _found(rows, share, Marks(await rows_of(rows, DELETED, share.name)))


async def _found(rows: IRows, share: Share, marks: Marks) -> FoundShare:
    name = share.name.enqueue_id
    left = frozenset(entry.number for entry in share.message.entries if marks.of(name, entry.number) is None)
    if not left:
        return FoundShare(Condition.OVER, share)
    lost = await _lost(rows, share, left)
    if lost is None:
        return FoundShare(Condition.UNDER_WAY, share)
    is_split = marks.is_any_moved(name)
    return FoundShare(Condition.LIVES if left - lost else Condition.OVER, share, left - lost, lost, is_split)


async def rows_of(rows: IRows, table: RowTable, name: ShareName) -> list[Row]:
    """All rows of a share in a table."""
    return [*await rows.rows_under(table, (*name.place.key, name.enqueue_id), SHARE_ENTRIES + 1)]


async def _lost(rows: IRows, share: Share, numbers: frozenset[int]) -> frozenset[int] | None:
    """The entries that another share goes on with; None: that is not known yet."""
    origin = share.origin
    if origin is None:
        return frozenset()
    marks = Marks(await rows_of(rows, DELETED, origin))
    lost: set[int] = set()
    for number in numbers:
        mark = marks.of(origin.enqueue_id, number)
        if mark is None or mark.is_unreadable:
            if await rows_of(rows, ENQUEUED, origin):
                return None
        elif mark.successor != share.name.enqueue_id:
            lost.add(number)
    return frozenset(lost)
