"""Epochs and starts: what a server goes on from."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable

from mailismus.errors import StartError
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.due import SHARD, slot_of
from mailismus.queue.providers.distributed.format.share import ShareName
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    CONTENT_START,
    DUE_START,
    EPOCHS,
    SPIDS,
    VIEW_HISTORY,
)
from mailismus.queue.providers.distributed.fsck.fault import SharedFault, fault
from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind as Kind
from mailismus.queue.providers.distributed.identity.epochs import LAST
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Put, RowTable
from mailismus.queue.providers.distributed.view.history import ALL_QUEUES

_TICK = 0.001


class NumberCheck:
    """The numbers of one queue. `now`: UTC seconds; `window_s`: of a slice, by which all are found; `keep_s`: seconds that a
    slice is kept in which nothing lives."""

    def __init__(self, rows: IRows, now: Callable[[], float], window_s: int, keep_s: float) -> None:
        self._rows, self._now, self._window_s, self._keep_s = rows, now, window_s, keep_s
        self.highest_epoch = 0
        self.browse: dict[Area, float] = {}
        self.content: dict[Area, float] = {}
        """The starts. One that is not known is taken to be the first slice that an epoch names."""

    async def faults(self) -> AsyncIterator[SharedFault]:
        """What is wrong with them. Raises `StartError` (65) where rows can't be found without what is lost, `NotDone`."""
        highest, first, is_new = 0, slice_start(self._now(), self._window_s), True
        for row in await self._rows.all_rows(EPOCHS):
            number, start = row["epoch"], row["slice_start"]
            if isinstance(number, int) and number > 0:
                highest, is_new = max(highest, number), False
            first = min(first, float(start)) if isinstance(start, int | float) else first
        last_row = await self._rows.row(SPIDS, (LAST,))
        last = None if last_row is None else last_row["epoch"]
        is_new = is_new and last is None
        self.highest_epoch = max(highest, last) if isinstance(last, int) else highest
        if not is_new:
            await self._refuse_lost_settings()
        if not (isinstance(last, int) and last >= highest) and not is_new:
            yield fault(Kind.EPOCHS_BEHIND, "spids", lambda: self._raise(last, highest), last=last, highest=highest)
        for area in Area:
            for one in await self._starts(area, first):
                if not is_new:
                    yield one

    async def _refuse_lost_settings(self) -> None:
        versions = [row["version"] for row in await self._rows.rows(VIEW_HISTORY, (ALL_QUEUES,))]
        if not versions or versions != list(range(1, len(versions) + 1)):
            text = (
                "the record of the settings of slices (table queue_config) is lost in part: write its rows again from a copy"
            )
            raise StartError(os.EX_DATAERR, f"{text}; without them rows can't be found, and nothing is repaired")

    async def _starts(self, area: Area, first: float) -> list[SharedFault]:
        now, found = self._now(), []
        browse = await self._start(BROWSE_START, "browse_start", (area.value,))
        content = await self._start(CONTENT_START, "content_start", (area.value,))
        if content is None:
            content = first if browse is None else min(first, browse)
            found.append(self._set(Kind.START_MISSING, CONTENT_START, "content_start", (area.value,), content, now))
        if browse is None:
            browse = content
            found.append(self._set(Kind.START_MISSING, BROWSE_START, "browse_start", (area.value,), content, now))
        elif browse > slice_start(now, self._window_s):
            found.append(self._set(Kind.START_AHEAD, BROWSE_START, "browse_start", (area.value,), content, max(now, browse)))
            browse = content
        slot, key = await self._start(DUE_START, "due_slot", (area.value, SHARD)), (area.value, SHARD)
        if slot is None:
            found.append(self._set(Kind.START_MISSING, DUE_START, "due_slot", key, slot_of(now), now))
        elif slot > slot_of(now):
            found.append(self._set(Kind.START_AHEAD, DUE_START, "due_slot", key, slot_of(now), max(now, slot)))
        self.browse[area], self.content[area] = browse, content
        return found

    def may_be_removed(self, name: ShareName) -> bool:
        """Whether the slice of a share may have been removed since."""
        area = next((area for area in Area if area.value == name.place.queue_name), None)
        if area is None:
            return False
        start, content = name.place.slice_start, self.content[area]
        is_being_removed = content < slice_start(self.browse[area] - self._keep_s, self._window_s)
        return start < content or (start == content and is_being_removed)

    def _set(self, kind: Kind, table: RowTable, cell: str, key: Key, start: float, at: float) -> SharedFault:
        put = Put(table, key, {cell: start}, at + _TICK)
        return fault(kind, f"{cell} {key[0]!s}", lambda: self._write(put), area=key[0])

    async def _start(self, table: RowTable, cell: str, key: Key) -> float | None:
        row = await self._rows.row(table, key)
        start = None if row is None else row[cell]
        return float(start) if isinstance(start, int | float) else None

    async def _raise(self, last: object, highest: int) -> None:
        if isinstance(last, int):
            await self._rows.change(SPIDS, (LAST,), {"epoch": highest}, {"epoch": last})
        else:
            await self._rows.add(SPIDS, (LAST,), {"epoch": highest})

    async def _write(self, put: Put) -> None:
        await self._rows.write([put])
