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
MOST_EPOCHS = 1000
"""Of other servers, of which it is kept where they begin."""


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
        self._others: dict[int, float] = {}

    async def has_index(self, share: Share) -> bool:
        """Whether a message that is this share alone has a row of the index. Raises `NotDone`."""
        message, start = share.message, share.name.place.slice_start
        if share.area is Area.INCOMING and await self._known_start(message.spool_id) == start:
            return False
        return bool(await self._rows.rows(MAILS, (to_signed(message.spool_id),), None, 1))

    async def _known_start(self, spool_id: SpoolId) -> float | None:
        """Where the epoch of a message begins, which never changes; read once."""
        own, epoch = self._own_slice(spool_id), spool_id >> COUNTER_BITS
        if own is not None:
            return own
        if epoch not in self._others:
            start = await self._start_of(spool_id)
            if start is None:
                return None
            if len(self._others) >= MOST_EPOCHS:
                del self._others[next(iter(self._others))]
            self._others[epoch] = start
        return self._others[epoch]

    async def _start_of(self, spool_id: SpoolId) -> float | None:
        row = await self._rows.row(EPOCHS, (spool_id >> COUNTER_BITS,)) if spool_id < 1 << 63 else None
        start = None if row is None else row["slice_start"]
        return float(start) if isinstance(start, int | float) else None

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
        start = await self._start_of(spool_id)
        if start is None:
            return []
        for bucket in sorted({bucket_of(spool_id, count) for count in self._bucket_counts()}):
            place = SharePlace(Area.INCOMING.value, start, bucket)
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
