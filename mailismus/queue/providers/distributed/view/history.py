"""The record of the view's settings: versions, each added once, by compare and set.

*Rules*: a version is never changed. The same settings again add none. Who finds another server's version where it wanted to
add its own judges its settings anew, by that one. An answer that does not come changes nothing: the record is read again.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import VIEW_HISTORY
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows, Row
from mailismus.queue.providers.distributed.view.change import ViewSettings, refusal_of

ALL_QUEUES = "all"
"""The settings are those of every area."""
TRIES = 20


class ViewHistory:
    """The record, for one server. `now`: UTC seconds."""

    def __init__(self, rows: IRows, server: str, now: Callable[[], float]) -> None:
        self._rows, self._server, self._now = rows, server, now

    async def versions(self) -> list[ViewSettings]:
        """All settings that ever were, the first first. Raises `NotDone`."""
        return [_view_of(row) for row in await self._rows.rows(VIEW_HISTORY, (ALL_QUEUES,))]

    async def adopt(self, wanted: ViewSettings) -> list[ViewSettings]:
        """Begin to use these settings; return all that ever were, these last. Raises `StartError` (78) where the history
        forbids them, `NotDone`."""
        for _ in range(TRIES):
            known = await self.versions()
            if known and known[-1] == wanted:
                return known
            refusal = refusal_of(known[-1], wanted) if known else None
            if refusal is not None:
                raise StartError(os.EX_CONFIG, refusal.text, refusal.setting)
            if await self._add(len(known) + 1, wanted):
                return [*known, wanted]
        raise NotDone("rows", f"the settings of the view changed {TRIES} times meanwhile")

    async def _add(self, version: int, view: ViewSettings) -> bool:
        """Whether it was added by this call."""
        cells: Row = {
            "slice_window_s": view.slice_window_s,
            "bucket_count": view.bucket_count,
            "pace": view.pace,
            "set_by": self._server,
            "set_at": self._now(),
        }
        try:
            return await self._rows.add(VIEW_HISTORY, (ALL_QUEUES, version), cells) is None
        except Unanswered:
            return False


def _view_of(row: Row) -> ViewSettings:
    window, buckets, pace = (row[name] for name in ("slice_window_s", "bucket_count", "pace"))
    assert isinstance(window, int)
    assert isinstance(buckets, int)
    assert isinstance(pace, int)
    return ViewSettings(window, buckets, pace)
