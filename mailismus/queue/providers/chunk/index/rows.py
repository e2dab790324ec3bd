"""Rows of resting messages: what is known of each in a few packed columns, found by spool id (pure).

    columns     a row for each message: 45 bytes; a row that is free is used again
    hash table  open addressing with linear probing: a row number of 4 bytes in each of its cells

*Rules*: a table is at most `MOST_LOAD` full, and grows by half: 5.3 to 8 bytes a message. So a message takes at most 56
bytes here, the slack of growing arrays included.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area

MOST_LOAD = 0.75
_LEAST_CELLS = 1024
_COUNT_BITS, _SIZE_BITS = 6, 34
"""Of the count of each of the five areas, and of the size: 64 together."""
_MOST_COUNT, _MOST_SIZE = (1 << _COUNT_BITS) - 1, (1 << _SIZE_BITS) - 1
_MOST_SPREAD = (1 << 32) - 1
_AREAS = tuple(Area)
_SIZE_SHIFT = _COUNT_BITS * len(_AREAS)
_SHIFTS = {area: _COUNT_BITS * at for at, area in zip(range(len(_AREAS) - 1, -1, -1), _AREAS, strict=True)}
"""Where the count of each area is in the facts."""
_MIX, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_USED, _IS_NEW, _IS_LOADING = 1, 2, 4
_ONE = {area: {area: 1} for area in Area}
"""The counts of most messages."""


class RestingFacts(NamedTuple):
    """One resting message."""

    spool_id: SpoolId
    number: int
    """Of its files."""
    due_at: float
    """When the first of its entries is due, UTC seconds."""
    spread_s: int
    """Seconds until the last of them is, rounded up."""
    counts: Mapping[Area, int]
    """Its entries by area."""
    stored_bytes: int
    sender_hash: int
    """32 bits of the sender's hash, of this process."""
    generation: int
    """The number of the next adjustment when it came to rest: its times are written down from before."""
    is_new: bool
    """S4; else S5."""


def summed(entries: Collection[tuple[Area, float]]) -> tuple[float, int, Mapping[Area, int]]:
    """Return `due_at`, `spread_s` and `counts` of these entries, at least one: the area of each, and when it is due."""
    if len(entries) == 1:
        ((area, due_at),) = entries
        return due_at, 0, _ONE[area]
    counts: dict[Area, int] = {}
    for area, _ in entries:
        counts[area] = counts.get(area, 0) + 1
    dues = [due_at for _, due_at in entries]
    first = min(dues)
    return first, math.ceil(max(dues) - first), counts


def hash_of(sender: bytes) -> int:
    """The hash of a sender. No client can choose two that are the same: it differs from process to process."""
    return hash(sender) & 0xFFFF_FFFF


class RestingRows:
    """The rows, by number from 0 on."""

    def __init__(self) -> None:
        self.due_at = array("d")
        """Read only."""
        self._spool_ids, self._numbers, self._facts = array("Q"), array("Q"), array("Q")
        self._senders, self._generations, self._spreads = array("I"), array("I"), array("I")
        self._flags = array("B")
        self._large: dict[int, tuple[int, tuple[int, ...]]] = {}
        """Sizes and counts that do not fit into their bits."""
        self._columns = (
            *(self.due_at, self._spool_ids, self._numbers, self._facts, self._senders, self._generations),
            *(self._spreads, self._flags),
        )
        self._next = 0
        """The first row that was never used."""
        self._free = array("I")
        self._cells = array("I", bytes(4 * _LEAST_CELLS))
        """The number of a row and one; 0: empty."""

    def __len__(self) -> int:
        return self._next - len(self._free)

    def reserve(self, count: int) -> None:
        """Have room for so many messages, before the first: what grows step by step leaves holes in the memory of the
        process."""
        for column in self._columns:
            column.append(0)
            column *= count
        size = int(count / MOST_LOAD) + 1
        if size > len(self._cells):
            self._resize(size)

    # ------------------------------------------------------------------ rows

    def add(self, facts: RestingFacts) -> int:
        """Add a message that is not there. Return its row."""
        spool_id, number, due_at, spread_s, counts, stored_bytes, sender_hash, generation, is_new = facts
        if self._free:
            row = self._free.pop()
        else:
            row, self._next = self._next, self._next + 1
            if row == len(self._flags):
                for column in self._columns:
                    column.append(0)
        self._spool_ids[row], self._numbers[row], self.due_at[row] = spool_id, number, due_at
        self._senders[row], self._generations[row] = sender_hash, generation
        self._spreads[row] = min(spread_s, _MOST_SPREAD)
        self._flags[row] = _USED | _IS_NEW if is_new else _USED
        packed = stored_bytes << _SIZE_SHIFT
        if stored_bytes > _MOST_SIZE or max(counts.values(), default=0) > _MOST_COUNT:
            self._large[row] = stored_bytes, tuple(counts.get(area, 0) for area in _AREAS)
            packed, counts = 0, dict.fromkeys(counts, 1)
        for area, count in counts.items():
            packed |= count << _SHIFTS[area]
        self._facts[row] = packed
        if len(self) > MOST_LOAD * len(self._cells):
            self._resize(len(self._cells) * 3 // 2)
        else:
            self._enter(row)
        return row

    def remove(self, row: int) -> None:
        """Forget a message."""
        self._leave(row)
        self._flags[row] = 0
        self._spool_ids[row] = self._numbers[row] = 0
        self._large.pop(row, None)
        self._free.append(row)

    def is_used(self, row: int) -> bool:
        """Whether there is a message in this row."""
        return bool(self._flags[row])

    def is_waiting(self, row: int, due_at: float) -> bool:
        """Whether there is a message in this row that is due at this time, and is not being read."""
        return bool(self._flags[row]) and self.due_at[row] == due_at and not self._flags[row] & _IS_LOADING

    def is_loading(self, row: int) -> bool:
        """Whether the message is being read."""
        return bool(self._flags[row] & _IS_LOADING)

    def mark_loading(self, row: int, *, is_loading: bool) -> None:
        """Note that the message is being read, or is not any more."""
        self._flags[row] = self._flags[row] & ~_IS_LOADING | (_IS_LOADING if is_loading else 0)

    def set_due(self, row: int, due_at: float) -> None:
        """The message is due at another time."""
        self.due_at[row] = due_at

    def last_due(self, row: int) -> float:
        """When the last of the message's entries is due, or a little later."""
        return self.due_at[row] + self._spreads[row]

    def sender_hash(self, row: int) -> int:
        """Of the message's sender."""
        return self._senders[row]

    def has_area(self, row: int, area: Area) -> bool:
        """Whether the message has an entry of this area."""
        return bool(self._facts[row] >> _SHIFTS[area] & _MOST_COUNT)

    def facts(self, row: int) -> RestingFacts:
        """All of a message."""
        packed = self._facts[row]
        large = self._large.get(row)
        if large is not None:
            size, counts = large
        else:
            counts = tuple(packed >> shift & _MOST_COUNT for shift in _SHIFTS.values())
            size = packed >> _SIZE_SHIFT
        return RestingFacts(
            SpoolId(self._spool_ids[row]),
            self._numbers[row],
            self.due_at[row],
            self._spreads[row],
            {area: count for area, count in zip(_AREAS, counts, strict=True) if count},
            size,
            self._senders[row],
            self._generations[row],
            bool(self._flags[row] & _IS_NEW),
        )

    def all(self) -> Iterator[int]:
        """Yield the rows with a message. They may change between two steps."""
        for row, flags in enumerate(self._flags):
            if flags:
                yield row

    def copy_ids(self) -> array[int]:
        """The spool ids of all, in no order; 0 stands for none."""
        return self._spool_ids[:]

    def copy_due(self) -> tuple[array[int], array[float]]:
        """The numbers of all, and when they are due, in no order; number 0 stands for none."""
        return self._numbers[: self._next], self.due_at[: self._next]

    # ------------------------------------------------------------------ by spool id

    def find(self, spool_id: SpoolId) -> int | None:
        """The row of a message; None: it does not rest."""
        cells, size = self._cells, len(self._cells)
        at = self._home(spool_id, size)
        while cell := cells[at]:
            if self._spool_ids[cell - 1] == spool_id:
                return cell - 1
            at = at + 1 if at + 1 < size else 0
        return None

    @staticmethod
    def _home(spool_id: int, size: int) -> int:
        return ((spool_id * _MIX & _MASK) >> 32) * size >> 32

    def _enter(self, row: int) -> None:
        cells, size = self._cells, len(self._cells)
        at = self._home(self._spool_ids[row], size)
        while cells[at]:
            at = at + 1 if at + 1 < size else 0
        cells[at] = row + 1

    def _leave(self, row: int) -> None:
        """Empty the cell of a row, and move those behind it that would not be found over an empty cell."""
        cells, size, ids = self._cells, len(self._cells), self._spool_ids
        at = self._home(ids[row], size)
        while cells[at] != row + 1:
            at = at + 1 if at + 1 < size else 0
        hole = at
        while True:
            at = at + 1 if at + 1 < size else 0
            cell = cells[at]
            if not cell:
                break
            home = self._home(ids[cell - 1], size)
            if (at - home) % size >= (at - hole) % size:
                cells[hole] = cell
                hole = at
        cells[hole] = 0

    def _resize(self, size: int) -> None:
        self._cells = array("I", bytes(4 * size))
        for row in self.all():
            self._enter(row)
