"""Where the shares of a message are, by its id: by its index rows, and where its epoch's messages begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.share import Share, ShareName, SharePlace, place_of, to_signed
from mailismus.queue.providers.distributed.format.slices import bucket_of
from mailismus.queue.providers.distributed.format.tables import ENQUEUED, EPOCHS, MAILS
from mailismus.queue.providers.distributed.identity.epochs import COUNTER_BITS
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Row

PAGE = 1000


class ShareFinding:
    """Finds shares. `bucket_counts`: all that the view ever had; `own_slice`: where an epoch of this server begins, of a
    message that came in here."""

    def __init__(
        self,
        rows: IRows,
        bucket_counts: Callable[[], Sequence[int]],
        own_slice: Callable[[SpoolId], float | None] = lambda spool_id: None,
    ) -> None:
        self._rows, self._bucket_counts, self._own_slice = rows, bucket_counts, own_slice

    async def has_index(self, share: Share) -> bool:
        """Whether a message that is this share alone has a row of the index. Raises `NotDone`."""
        message, start = share.message, share.name.place.slice_start
        if share.area is Area.INCOMING and self._own_slice(message.spool_id) == start:
            return False
        return bool(await self._rows.rows(MAILS, (to_signed(message.spool_id),), None, 1))

    async def shares_of(self, spool_id: SpoolId) -> list[ShareName]:
        """Those that may have entries. Raises `NotDone`."""
        indexed = await self.index_of(spool_id)
        return open_shares(indexed) if indexed else await self._by_epoch(spool_id)

    async def open_shares_of(self, spool_id: SpoolId) -> list[ShareName]:
        """Those of its index rows. Raises `NotDone`."""
        return open_shares(await self.index_of(spool_id))

    async def index_of(self, spool_id: SpoolId) -> list[Row]:
        """The index rows of a message. Raises `NotDone`."""
        found: list[Row] = []
        after: Key | None = None
        while True:
            rows = await self._rows.rows(MAILS, (to_signed(spool_id),), after, PAGE)
            found += rows
            if len(rows) < PAGE:
                return found
            after = (rows[-1]["enqueue_id"],)

    async def _by_epoch(self, spool_id: SpoolId) -> list[ShareName]:
        row = await self._rows.row(EPOCHS, (spool_id >> COUNTER_BITS,)) if spool_id < 1 << 63 else None
        start = None if row is None else row["slice_start"]
        if not isinstance(start, int | float):
            return []
        for bucket in sorted({bucket_of(spool_id, count) for count in self._bucket_counts()}):
            place = SharePlace(Area.INCOMING.value, float(start), bucket)
            names = await self._in_partition(spool_id, place)
            if names:
                return [ShareName(place, name) for name in names]
        return []

    async def _in_partition(self, spool_id: SpoolId, place: SharePlace) -> list[UUID]:
        """More than one where rows came late, and were written anew."""
        found: list[UUID] = []
        after: Key | None = None
        while True:
            rows = await self._rows.rows(ENQUEUED, place.key, after, PAGE)
            found += _heads_of(rows, to_signed(spool_id))
            if len(rows) < PAGE:
                return found
            after = (rows[-1]["enqueue_id"], rows[-1]["number"])


def open_shares(indexed: Sequence[Row]) -> list[ShareName]:
    """The shares of index rows of which something is left."""
    return [name for row in indexed if row["closed_at"] is None and (name := place_of(row)) is not None]


def _heads_of(rows: Sequence[Row], spool_id: int) -> Iterator[UUID]:
    for row in rows:
        name = row["enqueue_id"]
        if row["number"] == 0 and row["spool_id"] == spool_id and isinstance(name, UUID):
            yield name
