"""Pages of a search, from the newest slice back: what moves meanwhile moves into newer ones, so nothing is seen twice.

*Rule*: a share that this server has put in after the search began is not looked at: it has an id behind the one that the
search got when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Filter, Gap, Message, Page
from mailismus.queue.providers.distributed.browse.overlay import entries_of
from mailismus.queue.providers.distributed.browse.partition import LivingShare, pages_of
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.format.share import SharePlace
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.stores.rows import IRows


@attrs.frozen
class SearchCursor:
    """Where a search goes on: in `place`, behind the share `after`, or within it, behind an entry."""

    bound: UUID
    began_at: float
    place: SharePlace | None = None
    after: UUID | None = None
    within: UUID | None = None
    number: int = 0


@attrs.define
class FoundPage:
    """A page, with the shares that its entries are of."""

    shares: list[LivingShare] = attrs.field(factory=list)
    messages: list[Message] = attrs.field(factory=list)
    gaps: list[Gap] = attrs.field(factory=list)
    cursor: SearchCursor | None = None

    def end_at(self, cursor: SearchCursor | None) -> None:
        """The next page goes on there; None: it was the last one."""
        self.cursor = cursor

    def page(self) -> Page:
        """As it is told."""
        return Page(tuple(self.messages), self.cursor, tuple(self.gaps))


class Searching:
    """Searches of one queue. `now`: UTC seconds."""

    def __init__(
        self,
        rows: IRows,
        hand: Hand,
        starts: Starts,
        finding: ShareFinding,
        ids: ShareIds,
        now: Callable[[], float],
    ) -> None:
        self._rows, self._hand, self._starts, self._finding = rows, hand, starts, finding
        self._ids, self._now = ids, now

    async def search(self, wanted: Filter, after: object | None, limit: int, *, is_whole: bool = False) -> FoundPage:
        """As `IQueue.search`. `is_whole`: a share that fits into a page is not cut by the end of one. Raises `NotDone`."""
        cursor = after if isinstance(after, SearchCursor) else SearchCursor(self._ids(), self._now())
        page = FoundPage()
        if wanted.spool_id is not None:
            for living in await self.shares_of(wanted.spool_id):
                if not self._add(page, wanted, living, cursor, limit, is_whole=is_whole):
                    return page
            return page
        for place in self._places(wanted, cursor):
            behind = cursor.after if place == cursor.place else None
            async for found in pages_of(self._rows, place, behind, first_rows=2 * (limit + 1)):
                if found.gap is not None:
                    page.gaps.append(found.gap)
                for living in found.shares:
                    if self._ids.is_made_after(living.share.name.enqueue_id, cursor.bound):
                        continue
                    if not self._add(page, wanted, living, cursor, limit, is_whole=is_whole):
                        return page
        return page

    async def shares_of(self, spool_id: SpoolId) -> list[LivingShare]:
        """What lives of a message. Raises `NotDone`."""
        found = []
        for name in sorted(await self._finding.shares_of(spool_id), key=lambda one: one.enqueue_id.int):
            read = await read_share(self._rows, name)
            if read.condition is Condition.LIVES and read.share is not None:
                entries = tuple(entry for entry in read.share.message.entries if entry.number in read.left)
                found.append(LivingShare(read.share, entries, read.is_split))
        return found

    def _places(self, wanted: Filter, cursor: SearchCursor) -> Iterator[SharePlace]:
        """The partitions from the cursor's on, which may have been cleaned up since."""
        areas = [wanted.area] if wanted.area is not None else list(Area)
        rank = {area.value: number for number, area in enumerate(areas)}

        def order(place: SharePlace) -> tuple[float, int, int]:
            return -place.slice_start, rank[place.queue_name], place.bucket

        of_area = {area: set(self._starts.slices(area, cursor.began_at)) for area in areas}
        begin = None if cursor.place is None else order(cursor.place)
        for start in sorted(set().union(*of_area.values()), reverse=True):
            for area in areas:
                for place in self._starts.places(area, start) if start in of_area[area] else ():
                    if begin is None or order(place) >= begin:
                        yield place

    def _add(
        self, page: FoundPage, wanted: Filter, living: LivingShare, cursor: SearchCursor, limit: int, *, is_whole: bool
    ) -> bool:
        """Add what matches of a share. Return whether there is room for more."""
        share = living.share
        name = share.name.enqueue_id
        if wanted.spool_id is not None and cursor.within is not None and name.int < cursor.within.int:
            return True
        message = share.message
        entries = [
            entry
            for entry in entries_of(living, self._hand)
            if not (name == cursor.within and entry.number <= cursor.number)
            and wanted.area in (None, entry.area)
            and wanted.matches(message, entry)
        ]
        room = limit - sum(len(found.entries) for found in page.messages)
        if not entries:
            return True
        if room <= 0:
            page.end_at(page.cursor or cursor)
            return False
        some = [] if is_whole and page.messages and len(entries) > room else entries[:room]
        if some:
            page.messages.append(message.with_entries(some))
            page.shares.append(living)
            page.end_at(None)
        if len(entries) >= room:
            number = some[-1].number if some else 0
            page.end_at(attrs.evolve(cursor, place=share.name.place, after=_before(name), within=name, number=number))
            return False
        return True


def _before(name: UUID) -> UUID:
    """An id behind which this one comes, and no other one that is before it."""
    return UUID(int=name.int - 1)
