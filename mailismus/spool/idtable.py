"""A table from 64-bit ids to small counts in flat arrays: 13 to 26 bytes an id; a dict needs 78 (pure).

Open addressing with linear probing in 256 sub-tables, each a power of two of slots (8 bytes of id, 2 of count; count 0: a
free slot). A sub-table grows when more than four fifths of its slots are used, and shrinks below a tenth. Each does so
alone, so no single call copies more than 1/256 of the ids. A removal shifts the following ids back: no tombstones.

*Rules*: the hash is the upper end of a multiplication by 2**64 / golden ratio. Spool ids are consecutive and belong to a few
epochs (upper 32 bits): this multiplier spreads each epoch evenly and puts the next one into the gaps. Sub-table and slot are
consecutive bit fields from the top of the hash.
*Weakness*: the hash has no secret. Someone who could choose which ids stay could cause long probes. But ids are assigned one
by one to all clients alike, and a probe of 1,000 slots takes only some 50 us.

Source: Knuth, The Art of Computer Programming 3, 6.4, algorithms L and R.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import compress

MAX_COUNT = 0xFFFF
"""The largest count."""

_MULTIPLIER = 0x9E37_79B9_7F4A_7C15
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_TABLES = 256
_TABLE_SHIFT = 56
_MIN_SLOTS = 4
_NO_ID = array("Q", [0])
_NO_COUNT = array("H", [0])
"""Arrays made by multiplication have exactly their size; those made of bytes are 1/16 larger."""


def _ids(slots: int) -> array[int]:
    return _NO_ID * slots


def _counts(slots: int) -> array[int]:
    return _NO_COUNT * slots


class IdTable:
    """Counts from 1 to `MAX_COUNT` by id, 0 <= id < 2**64. Not ordered; not for several threads."""

    __slots__ = ("_counts", "_ids", "_length", "_used")

    def __init__(self) -> None:
        self._ids = [_ids(_MIN_SLOTS) for _ in range(_TABLES)]
        self._counts = [_counts(_MIN_SLOTS) for _ in range(_TABLES)]
        self._used = array("L", bytes(array("L").itemsize * _TABLES))
        self._length = 0

    def __len__(self) -> int:
        """Number of ids with a count."""
        return self._length

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids, in no order. The table must not change meanwhile."""
        for ids, counts in zip(self._ids, self._counts, strict=True):
            yield from compress(ids, counts)

    @property
    def size_bytes(self) -> int:
        """Memory of the arrays, slots and headers."""
        return sum(each.__sizeof__() for arrays in (self._ids, self._counts) for each in arrays)

    def get(self, identity: int) -> int:
        """The count of this id; 0: none."""
        spread = identity * _MULTIPLIER & _MASK
        table = spread >> _TABLE_SHIFT
        ids = self._ids[table]
        counts = self._counts[table]
        mask = len(ids) - 1
        slot = spread >> (_TABLE_SHIFT - mask.bit_length()) & mask
        while count := counts[slot]:
            if ids[slot] == identity:
                return count
            slot = slot + 1 & mask
        return 0

    def put(self, identity: int, count: int) -> None:
        """Set the count of this id, 1 to `MAX_COUNT`. Raises ValueError beyond that."""
        if not 0 < count <= MAX_COUNT:
            raise ValueError(f"a count is 1 to {MAX_COUNT}, not {count}")
        spread = identity * _MULTIPLIER & _MASK
        table = spread >> _TABLE_SHIFT
        ids = self._ids[table]
        counts = self._counts[table]
        mask = len(ids) - 1
        slot = spread >> (_TABLE_SHIFT - mask.bit_length()) & mask
        while counts[slot]:
            if ids[slot] == identity:
                counts[slot] = count
                return
            slot = slot + 1 & mask
        ids[slot] = identity
        counts[slot] = count
        self._length += 1
        used = self._used[table] + 1
        self._used[table] = used
        if used * 5 > len(ids) * 4:
            self._resize(table, len(ids) * 2)

    def remove(self, identity: int) -> int:
        """Remove the count of this id and return it; 0: there was none."""
        spread = identity * _MULTIPLIER & _MASK
        table = spread >> _TABLE_SHIFT
        ids = self._ids[table]
        counts = self._counts[table]
        mask = len(ids) - 1
        slot = spread >> (_TABLE_SHIFT - mask.bit_length()) & mask
        while count := counts[slot]:
            if ids[slot] == identity:
                break
            slot = slot + 1 & mask
        else:
            return 0
        self._close_gap(ids, counts, slot)
        self._length -= 1
        used = self._used[table] - 1
        self._used[table] = used
        if used * 10 < len(ids) and len(ids) > _MIN_SLOTS:
            self._resize(table, len(ids) // 2)
        return count

    @staticmethod
    def _close_gap(ids: array[int], counts: array[int], gap: int) -> None:
        """Free a slot: move up each following id that comes nearer to its own slot by that."""
        mask = len(ids) - 1
        shift = _TABLE_SHIFT - mask.bit_length()
        slot = gap + 1 & mask
        while counts[slot]:
            away = slot - (ids[slot] * _MULTIPLIER >> shift) & mask
            if away >= (slot - gap & mask):
                ids[gap] = ids[slot]
                counts[gap] = counts[slot]
                gap = slot
            slot = slot + 1 & mask
        counts[gap] = 0

    def _resize(self, table: int, slots: int) -> None:
        mask = slots - 1
        shift = _TABLE_SHIFT - mask.bit_length()
        ids = _ids(slots)
        counts = _counts(slots)
        for identity, count in zip(self._ids[table], self._counts[table], strict=True):
            if count:
                slot = identity * _MULTIPLIER >> shift & mask
                while counts[slot]:
                    slot = slot + 1 & mask
                ids[slot] = identity
                counts[slot] = count
        self._ids[table] = ids
        self._counts[table] = counts
