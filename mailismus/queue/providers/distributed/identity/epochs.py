"""Epochs: the upper half of a spool id. Each is one server's, and is never given out twice.

*Rules*: the last one is a row that is only raised, by compare and set; so is the last number of an act. An answer that does
not come costs an epoch, for it may have been raised. An epoch is used when its own row is durable: it leads from a spool
id to the slice in which its messages begin.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.format.tables import EPOCHS, SPIDS
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows, Put, Row

LAST = "last"
TRIES = 50
COUNTER_BITS = 32
MOST_EPOCHS = 1 << 31
"""More would not fit into a signed number of the database."""


@attrs.define
class Epoch:
    """An epoch, and the ids that it still has."""

    number: int
    slice_start: float
    _used: int = 0

    def next_id(self) -> SpoolId | None:
        """An id; None: there is none left."""
        if self._used == (1 << COUNTER_BITS) - 1:
            return None
        self._used += 1
        return SpoolId((self.number << COUNTER_BITS) | self._used)


async def next_number(rows: IRows, name: str, above: int = 0) -> int:
    """A number of this name that nobody has got, greater than `above`. Raises `NotDone`."""
    for _ in range(TRIES):
        row = await rows.row(SPIDS, (name,))
        try:
            if row is None:
                if await rows.add(SPIDS, (name,), {"epoch": above + 1}) is None:
                    return above + 1
                continue
            last = row["epoch"]
            assert isinstance(last, int)
            number = max(last, above) + 1
            if number >= MOST_EPOCHS:
                raise NotDone("rows", "all numbers are used up")
            if await rows.change(SPIDS, (name,), {"epoch": number}, {"epoch": last}) is None:
                return number
        except Unanswered:
            continue  # what was raised is not used by anyone
    raise NotDone("rows", f"no number after {TRIES} tries")


class Epochs:
    """Claims epochs for one server. `now`: UTC seconds."""

    def __init__(self, rows: IRows, server: str, now: Callable[[], float]) -> None:
        self._rows, self._server, self._now = rows, server, now
        self.last_row: Put | None = None
        """The row of the last epoch that was claimed, as it was written; None: none was."""

    async def claim(self, slice_start: float) -> Epoch:
        """A new epoch. Raises `NotDone`."""
        number = await next_number(self._rows, LAST)
        now = self._now()
        cells: Row = {"server": self._server, "claimed_at": now, "slice_start": slice_start}
        row = Put(EPOCHS, (number,), cells, now)
        await self._write(row)
        self.last_row = row
        return Epoch(number, slice_start)

    async def _write(self, put: Put) -> None:
        for _ in range(TRIES):
            try:
                await self._rows.write([put])
            except Unanswered:
                continue
            return
        raise NotDone("rows", "no answer about the row of an epoch")
