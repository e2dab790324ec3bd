"""The rows of counts, and their sum.

    a server's row of a slot    what it has changed since its start, all in all: written by it alone
    a recount's row (epoch 0)   what lived when the slot was read, and what all servers had changed by then: `base`

What lives in a slot is the recount, and what the rows of servers have changed since their base.

*Rules*: a server that ended without a word may have changed what it did not write down: until all is recounted that lay
there then, the counts are not sure. So it is with a slot of which a server has doubts that came after its recount.
The row of a server that had ended without a word before the recount counts no more: its last write may come late.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

import attrs

from mailismus.queue.providers.distributed.counts.numbers import Numbers, Slot
from mailismus.queue.providers.distributed.format.tables import COUNTING_SERVERS, SLICE_COUNTS
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Put, Row, Value

RECOUNT = 0
"""In place of an epoch: the row of a recount; of `COUNTING_SERVERS`: whether all was ever counted."""
OPEN, CLEAN = 1, 2
FORGET_S = 86_400
"""How long a server that ended in order is known."""
PAGE = 1000
_LAST = (1 << 63) - 1


@attrs.frozen
class CountRow:
    """One row. `changes`: begins and ends of changes so far; `under_way`: those without an end; `doubts`: how often what
    was changed was not sure. `base`: of a recount, what each server's row said by then, and its doubts; `over`: epochs
    that had ended without a word."""

    slot: Slot
    epoch: int
    numbers: Numbers
    changes: int = 0
    under_way: int = 0
    doubts: int = 0
    base: Mapping[int, tuple[Numbers, int]] = attrs.field(factory=dict)
    over: frozenset[int] = frozenset()

    def put(self, at: float) -> Put:
        """The write of it."""
        cells: dict[str, Value] = {
            "entries": self.numbers.entries,
            "messages": self.numbers.messages,
            "stored_bytes": self.numbers.stored_bytes,
            "changes": self.changes,
            "under_way": self.under_way,
            "doubts": self.doubts,
        }
        if self.epoch == RECOUNT:
            base: dict[str, tuple[int, ...] | None] = {
                str(epoch): (one.entries, one.messages, one.stored_bytes, doubts)
                for epoch, (one, doubts) in self.base.items()
            }
            base |= {str(epoch): None for epoch in sorted(self.over)}
            cells["base"] = json.dumps(base, separators=(",", ":")).encode()
        return Put(SLICE_COUNTS, (*self.slot, self.epoch), cells, at)


SlotRows = dict[int, CountRow]
"""The rows of a slot, by their epochs."""


async def rows_of_area(rows: IRows, area: str, start: float) -> dict[Slot, SlotRows]:
    """All rows of an area, from a slice on. Raises `NotDone`."""
    found: dict[Slot, SlotRows] = {}
    after: Key = (start - 0.001, _LAST)
    while True:
        page = await rows.rows(SLICE_COUNTS, (area,), after, PAGE)
        for row in page:
            one = _row_of(area, row)
            found.setdefault(one.slot, {})[one.epoch] = one
        if len(page) < PAGE:
            return found
        after = (page[-1]["slice_start"], page[-1]["epoch"])


async def servers_of(rows: IRows) -> dict[int, tuple[bool, int]]:
    """The servers that count, by their epochs: whether they have not ended in order, and how often they wrote all down.
    Raises `NotDone`."""
    found = {}
    for row in await rows.all_rows(COUNTING_SERVERS):
        found[_whole(row["epoch"])] = (_whole(row["state"]) != CLEAN, _whole(row["writes"]))
    return found


def server_row(epoch: int, state: int, writes: int, at: float, ttl_s: int = 0) -> Put:
    """The row of a server that counts."""
    return Put(COUNTING_SERVERS, (epoch,), {"state": state, "writes": writes}, at, ttl_s)


def gone_servers(servers: Mapping[int, tuple[bool, int]], live: Iterable[int]) -> set[int]:
    """Epochs of which changes may be missing: those that ended without a word. 0: nothing was ever counted."""
    gone = {epoch for epoch, (is_open, _) in servers.items() if is_open} - set(live)
    return gone if RECOUNT in servers else gone | {RECOUNT}


def sum_of(slot_rows: SlotRows) -> Numbers:
    """What lives in a slot."""
    recount = slot_rows.get(RECOUNT)
    total = Numbers() if recount is None else recount.numbers
    for row, base, _ in _counted(slot_rows):
        total = total + row.numbers - base
    return total


def is_doubted(slot_rows: SlotRows) -> bool:
    """Whether a server has had doubts since the recount."""
    return any(row.doubts > doubts for row, _, doubts in _counted(slot_rows))


def _counted(slot_rows: SlotRows) -> Iterator[tuple[CountRow, Numbers, int]]:
    """The rows of servers that count, each with the numbers and doubts of it that the recount came behind."""
    recount = slot_rows.get(RECOUNT)
    for epoch, row in slot_rows.items():
        if epoch != RECOUNT and (recount is None or epoch not in recount.over):
            base = None if recount is None else recount.base.get(epoch)
            yield (row, *(base or (Numbers(), 0)))


def _row_of(area: str, row: Row) -> CountRow:
    start, epoch = row["slice_start"], row["epoch"]
    assert isinstance(start, int | float)
    assert isinstance(epoch, int)
    return CountRow(
        (area, float(start)),
        epoch,
        Numbers(_whole(row["entries"]), _whole(row["messages"]), _whole(row["stored_bytes"])),
        *(_whole(row["changes"]), _whole(row["under_way"]), _whole(row["doubts"])),
        *_base_of(row["base"]),
    )


def _base_of(value: Value) -> tuple[dict[int, tuple[Numbers, int]], frozenset[int]]:
    """A recount's base, and the epochs that were over."""
    try:
        cells = json.loads(value) if isinstance(value, bytes) else {}
        base = {
            int(epoch): (Numbers(int(cell[0]), int(cell[1]), int(cell[2])), int(cell[3]))
            for epoch, cell in cells.items()
            if cell is not None
        }
        return base, frozenset(int(epoch) for epoch, cell in cells.items() if cell is None)
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
        return {}, frozenset()


def _whole(value: Value) -> int:
    return value if isinstance(value, int) else 0
