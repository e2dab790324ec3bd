"""From which slice on each area is read (browse start), and from which on anything is stored (content start).

    content start <= what may be removed <= browse start - keep        browse start: the first slice in which something lives

*Rules*: a browse start is moved forwards alone, and never to the present slice nor into `GRACE_S` before it, by the clock of
this server or the database's, whichever is behind: a clock may be wrong, and a row may be late. Rows are removed up to the
end of their slice and a minute: a later one stays. The marks go behind their rows, whenever they were written. Where
settings changed, slices are as long as they ever were: a row without its marks would be mail. What is over stays over: of an
old slice it is remembered up to which share nothing lives, so that a slice with much of which little is left is not read
from its begin again and again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from uuid import UUID

from mailismus.queue.interface import Area, Gap
from mailismus.queue.providers.distributed.browse.partition import LivingShare, pages_of
from mailismus.queue.providers.distributed.format.share import SharePlace
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import BROWSE_START, CONTENT_START, DELETED, ENQUEUED, SLICE_COUNTS
from mailismus.queue.providers.distributed.identity.clock import surely_now
from mailismus.queue.providers.distributed.stores.rows import Erase, IRows, Put, RowTable
from mailismus.queue.providers.distributed.stores.together import together
from mailismus.queue.providers.distributed.view.change import ReadingView

GRACE_S = 300.0
LATE_S = 60.0
GO_S = 60
"""Seconds after which rows of counts go: a row alone can't be erased."""


class Starts:
    """The starts of one queue. `view`: the settings by which all rows are found; `now`: UTC seconds; `keep_s`: seconds that
    a slice is kept in which nothing lives."""

    def __init__(self, rows: IRows, view: Callable[[], ReadingView], now: Callable[[], float], keep_s: float) -> None:
        self._rows, self._view, self._now, self._keep_s = rows, view, now, keep_s
        self._browse: dict[Area, float] = {}
        self._content: dict[Area, float] = {}
        self._over_to: dict[SharePlace, UUID] = {}
        """Up to which share nothing lives, of partitions that are too old for new ones."""
        self._is_moving = False

    async def load(self) -> None:
        """Learn them; they are written down where there are none. Raises `NotDone`."""
        await self._learn(is_looking=False)

    async def look(self) -> None:
        """Learn them, and write nothing. Raises `NotDone`."""
        await self._learn(is_looking=True)

    async def _learn(self, *, is_looking: bool) -> None:
        await together(self._learn_area(area, is_looking) for area in Area)

    async def _learn_area(self, area: Area, is_looking: bool) -> None:
        new: list[Put] = []
        wanted = (BROWSE_START, "browse_start"), (CONTENT_START, "content_start")
        browse, content = await together(self._stored(table, cell, area) for table, cell in wanted)
        if browse is None:
            browse = slice_start(await surely_now(self._rows, self._now), self._view().slice_window_s)
            new.append(Put(BROWSE_START, (area.value,), {"browse_start": browse}, browse))
        if content is None:
            content = browse
            new.append(Put(CONTENT_START, (area.value,), {"content_start": content}, content))
        await together(self._rows.write([put]) for put in ([] if is_looking else new))
        self._browse[area], self._content[area] = browse, content

    async def _stored(self, table: RowTable, cell: str, area: Area) -> float | None:
        row = await self._rows.row(table, (area.value,))
        start = None if row is None else row[cell]
        return float(start) if isinstance(start, int | float) else None

    def browse_start(self, area: Area) -> float:
        """The first slice that is read."""
        return self._browse[area]

    def slices(self, area: Area, until: float) -> list[float]:
        """The slices to be read, oldest first, up to the one of a time."""
        window = self._view().slice_window_s
        start = slice_start(self._browse[area], window)
        return [start + step * window for step in range(int((slice_start(until, window) - start) // window) + 1)]

    def places(self, area: Area, start: float) -> list[SharePlace]:
        """The partitions of a slice."""
        return [SharePlace(area.value, start, bucket) for bucket in range(self._view().bucket_count)]

    async def living(self, area: Area, until: float, gaps: list[Gap] | None = None) -> AsyncIterator[LivingShare]:
        """All shares of an area of which something lives, oldest slice first, up to the one of a time. `gaps`: what can't be
        read is added. Raises `NotDone`."""
        for start in self.slices(area, until):
            for place in self.places(area, start):
                async for page in pages_of(self._rows, place, self._over_to.get(place)):
                    if gaps is not None and page.gap is not None:
                        gaps.append(page.gap)
                    for living in page.shares:
                        yield living

    async def move(self) -> None:
        """Move the browse starts forwards, and remove what is far enough behind them. Raises `NotDone`, `Unanswered`."""
        if self._is_moving:
            return
        self._is_moving = True
        try:
            now = await surely_now(self._rows, self._now)
            for area in Area:
                await self._move(area, now)
                await self._clean(area, now)
        finally:
            self._is_moving = False

    async def _move(self, area: Area, now: float) -> None:
        window, longest = self._view().slice_window_s, self._view().longest_window_s
        last = slice_start(now - longest - GRACE_S, window)
        start = self._browse[area]
        while start < last and not await self._lives(area, start):
            start += window
        if start > self._browse[area]:
            await self._rows.write([Put(BROWSE_START, (area.value,), {"browse_start": start}, start)])
            self._browse[area] = start
            for place in [one for one in self._over_to if one.queue_name == area.value and one.slice_start < start]:
                del self._over_to[place]

    async def _lives(self, area: Area, start: float) -> bool:
        for place in self.places(area, start):
            async for page in pages_of(self._rows, place, self._over_to.get(place)):
                if page.shares or page.gap is not None:
                    return True
                if page.after is not None:
                    self._over_to[place] = page.after
        return False

    async def _clean(self, area: Area, now: float) -> None:
        window = self._view().slice_window_s
        last = slice_start(self._browse[area] - self._keep_s, window)
        start = self._content[area]
        while start < last:
            end, late = start + self._view().longest_window_s + LATE_S, now + LATE_S
            for table, at in ((ENQUEUED, end), (DELETED, max(end, late))):
                await self._rows.write([Erase(table, place.key, at) for place in self.places(area, start)])
            start += window
            await self._rows.write([Put(CONTENT_START, (area.value,), {"content_start": start}, start)])
            self._content[area] = start
            await self._forget_counts(area, start)

    async def _forget_counts(self, area: Area, before: float) -> None:
        """Have the rows of counts go that are of slices before this one."""
        found = await self._rows.rows(SLICE_COUNTS, (area.value,))
        cells = tuple(column.name for column in SLICE_COUNTS.cells)
        gone = [row for row in found if isinstance(start := row["slice_start"], int | float) and start < before]
        key = ((area.value, row["slice_start"], row["epoch"]) for row in gone)
        puts = [
            Put(SLICE_COUNTS, one, {name: row[name] for name in cells}, self._now(), GO_S)
            for one, row in zip(key, gone, strict=True)
        ]
        if puts:
            await self._rows.write(puts)
