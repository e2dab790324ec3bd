"""Whether anything may name the content of a message.

*Rules*: in doubt something does. A share that lives, or may, or can't be read. A share of which there is nothing yet, in a
slice younger than a day: its rows may be on their way. A share that moved where the index does not say so yet, or said so
within a day: its successor may be on its way, and the index with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.format.marks import Marks
from mailismus.queue.providers.distributed.format.share import ShareName, place_of
from mailismus.queue.providers.distributed.format.tables import DELETED
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share, rows_of
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.stores.rows import IRows, Row

OLD_S = 86_400.0
_MAY_LIVE = (Condition.LIVES, Condition.UNDER_WAY, Condition.DAMAGED)


class ContentNaming:
    """Asks it of one queue."""

    def __init__(self, rows: IRows, finding: ShareFinding) -> None:
        self._rows, self._finding = rows, finding

    async def is_named(self, spool_id: SpoolId, key: str | None, now: float) -> bool:
        """Whether the content of this key may be needed; None: any of the message. `now`: the database's clock. Raises
        `NotDone`."""
        indexed = await self._finding.index_of(spool_id)
        if not indexed:
            names = await self._finding.shares_of(spool_id)
            return await self._is_any_named([(name, True) for name in names], key, now)
        if any(_is_young(row["closed_at"], now) for row in indexed):
            return True
        return await self._is_any_named([(place_of(row), row["closed_at"] is None) for row in indexed], key, now)

    async def is_index_left(self, spool_id: SpoolId, now: float) -> bool:
        """Whether a message has rows of the index, and nothing else. Raises `NotDone`."""
        return bool(await self._finding.index_of(spool_id)) and not await self.is_named(spool_id, None, now)

    async def _is_any_named(self, shares: Sequence[tuple[ShareName | None, bool]], key: str | None, now: float) -> bool:
        for name, is_open in shares:
            if name is None or await self._is_share_named(name, key, now, is_open=is_open):
                return True
        return False

    async def _is_share_named(self, name: ShareName, key: str | None, now: float, *, is_open: bool) -> bool:
        found = await read_share(self._rows, name)
        if found.condition in _MAY_LIVE:
            return found.share is None or key in (None, found.share.blob.key)
        if found.condition is Condition.UNKNOWN:
            return name.place.slice_start > now - OLD_S
        if not is_open:
            return False
        marks: Sequence[Row] = await rows_of(self._rows, DELETED, name)
        return Marks(marks).is_any_moved(name.enqueue_id)


def _is_young(closed_at: object, now: float) -> bool:
    return isinstance(closed_at, int | float) and closed_at > now - OLD_S
