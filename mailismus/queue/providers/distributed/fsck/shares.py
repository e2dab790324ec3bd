"""One share: its marks, its origin, its index row, its content, and what brings it back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

import attrs

from mailismus.mail.ids import format_spool_id
from mailismus.queue.providers.distributed.browse.partition import living_of
from mailismus.queue.providers.distributed.dump.cells import time_text
from mailismus.queue.providers.distributed.format.due import due_share, slot_key
from mailismus.queue.providers.distributed.format.marks import Marks
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import Share, ShareName, place_of, read_shares
from mailismus.queue.providers.distributed.format.tables import DELETED, DUE, ENQUEUED
from mailismus.queue.providers.distributed.fsck.contents import ContentCheck
from mailismus.queue.providers.distributed.fsck.fault import SharedFault, fault
from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind as Kind
from mailismus.queue.providers.distributed.fsck.numbers import NumberCheck
from mailismus.queue.providers.distributed.fsck.repairs import NOBODY, SharedRepairs
from mailismus.queue.providers.distributed.fsck.waiting import ShareReminders
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share, rows_of
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.stores.rows import IRows, Row


@attrs.frozen
class ShareCheck:
    """Checks the shares of one queue. `are_triggers_known`: whether all triggers were looked at."""

    rows: IRows
    finding: ShareFinding
    numbers: NumberCheck
    waiting: ShareReminders
    contents: ContentCheck
    repairs: SharedRepairs
    are_triggers_known: bool

    async def faults(self, share: Share, marks: Marks) -> AsyncIterator[SharedFault]:
        """What is wrong with a share. Raises `NotDone`."""
        async for one in self._moves(share, marks):
            yield one
        numbers = [entry.number for entry in living_of(share, marks).entries]
        if share.origin is not None and numbers:
            lost = await self._lost(share, share.origin, numbers)
            if lost is not None:
                yield lost
                return
        indexed = await self.finding.index_of(share.message.spool_id)
        found = await self._index(share, indexed, len(numbers))
        if found is not None:
            yield found
        self.waiting.lacks(share.name, ())  # it is there
        if not numbers:
            return
        content = await self.contents.fault_of(share, numbers)
        if content is not None:
            yield content
            return  # its repair puts the entries elsewhere
        if share.name.place.slice_start < self.numbers.browse[share.area]:
            path = share_name(share.name)
            mend = partial(self.repairs.put_again, share, numbers)
            yield fault(Kind.BEFORE_START, path, mend, count=len(numbers))
            return
        if self.waiting.lacks(share.name, numbers):
            async for one in self._waits(share, len(numbers)):
                yield one

    async def _waits(self, share: Share, count: int) -> AsyncIterator[SharedFault]:
        path = share_name(share.name)
        if share.due_at <= self.repairs.now():
            if self.are_triggers_known:
                yield fault(Kind.TRIGGER_MISSING, path, partial(self.repairs.publish, share), count=count)
            return
        due = due_share(share.name, share.due_at, share.due_at, NOBODY)
        key = (*slot_key(share.name.place.queue_name, due.slot), due.due_at, share.name.enqueue_id)
        if await self.rows.row(DUE, key) is None:
            at = time_text(share.due_at)
            yield fault(Kind.DUE_MISSING, path, partial(self.repairs.wait_again, share), count=count, at=at)

    # marks

    async def _moves(self, share: Share, marks: Marks) -> AsyncIterator[SharedFault]:
        """Entries that moved, and are nowhere."""
        moved: dict[ShareName, list[int]] = {}
        unreadable = []
        for entry in share.message.entries:
            mark = marks.of(share.name.enqueue_id, entry.number)
            if mark is not None and mark.is_unreadable:
                unreadable.append(entry.number)
            elif mark is not None and mark.moved_to is not None:
                moved.setdefault(mark.moved_to, []).append(entry.number)
        path = share_name(share.name)
        if unreadable:
            mend = partial(self._find_again, share, unreadable)
            yield fault(Kind.MOVE_UNREADABLE, path, mend, count=len(unreadable))
        for successor, numbers in moved.items():
            missing = await self._not_in(successor, numbers)
            if missing:
                where = share_name(successor)
                yield fault(
                    Kind.SUCCESSOR_MISSING,
                    path,
                    partial(self.repairs.put_again, share, missing),
                    count=len(missing),
                    successor=where,
                )

    async def _not_in(self, successor: ShareName, numbers: Sequence[int]) -> list[int]:
        """The entries of which there is neither row nor mark where they went to. A slice that may have been removed since
        tells nothing."""
        if self.numbers.may_be_removed(successor):
            return []
        there = {row["number"] for row in await rows_of(self.rows, ENQUEUED, successor)}
        marks = Marks(await rows_of(self.rows, DELETED, successor))
        return [number for number in numbers if number not in there and marks.of(successor.enqueue_id, number) is None]

    async def _find_again(self, share: Share, numbers: Sequence[int]) -> None:
        left = set(numbers)
        for row in await self.finding.index_of(share.message.spool_id):
            name = place_of(row)
            rows = [] if name is None else await rows_of(self.rows, ENQUEUED, name)
            for other in read_shares(name.place, rows).shares if name is not None else ():
                here = left.intersection(entry.number for entry in other.message.entries)
                if other.origin == share.name and here:
                    await self.repairs.mark_moved(share, here, other.name, is_closed=False)
                    left -= here
        if left:
            await self.repairs.put_again(share, left)

    # the origin

    async def _lost(self, share: Share, origin: ShareName, numbers: Sequence[int]) -> SharedFault | None:
        """The share does not count, as far as its origin knows."""
        found = await read_share(self.rows, share.name)
        path, before = share_name(share.name), share_name(origin)
        if found.condition is Condition.UNDER_WAY:
            mend = partial(self._own, share, origin, numbers)
            return fault(Kind.ORIGIN_UNMARKED, path, mend, count=len(numbers), origin=before)
        if found.lost:
            lost, is_closed = found.lost, not found.left
            mend = partial(self.repairs.mark_removed, share, lost, is_closed=is_closed)
            return fault(Kind.SHARE_DISOWNED, path, mend, count=len(lost), origin=before)
        return None

    async def _own(self, share: Share, origin: ShareName, numbers: Sequence[int]) -> None:
        """Write the marks that the origin lacks."""
        marks = Marks(await rows_of(self.rows, DELETED, origin))
        for one in read_shares(origin.place, await rows_of(self.rows, ENQUEUED, origin)).shares:
            left = {entry.number for entry in one.message.entries if not _is_over(marks, one, entry.number)}
            lacking = left.intersection(numbers)
            await self.repairs.mark_moved(one, lacking, share.name, is_closed=left == lacking)

    # the index

    async def _index(self, share: Share, indexed: Sequence[Row], count: int) -> SharedFault | None:
        path, spool_id = share_name(share.name), share.message.spool_id
        own = next((row for row in indexed if row["enqueue_id"] == share.name.enqueue_id), None)
        is_closed = own is not None and own["closed_at"] is not None
        if not count:
            if own is not None and not is_closed:
                return fault(Kind.INDEX_OPEN, path, partial(self.repairs.close_index, share))
            is_last = own is not None and own["enqueue_id"] == indexed[-1]["enqueue_id"]
            if is_last and all(row["closed_at"] is not None for row in indexed):
                mend = partial(self.repairs.free, share)
                return fault(Kind.INDEX_LEFT, path, mend, message=format_spool_id(spool_id))
            return None
        if is_closed:
            return fault(Kind.INDEX_CLOSED, path, partial(self.repairs.open_index, share, indexed), count=count)
        if own is not None and place_of(own) != share.name:
            return fault(Kind.INDEX_MISPLACED, path, partial(self.repairs.index, share))
        if own is None and (indexed or share.name not in await self.finding.shares_of(spool_id)):
            return fault(Kind.INDEX_MISSING, path, partial(self.repairs.index, share))
        return None


def _is_over(marks: Marks, share: Share, number: int) -> bool:
    mark = marks.of(share.name.enqueue_id, number)
    return mark is not None and not mark.is_unreadable
