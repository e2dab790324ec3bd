"""Due buckets: rows by the time at which they are due, in packed arrays (pure).

    put -> a bucket of `WIDTH_S` seconds, in no order -> its time has come: the front, in the order of time -> first

A row takes four bytes in a bucket, twelve in the front. What is put twice, or is gone, is passed over when it comes to the
front, and dropped by `rebuild`.

*Rules*: `next_due` may be early by the width of a bucket, never late.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from collections.abc import Iterable

from mailismus.queue.providers.chunk.index.rows import RestingRows

WIDTH_S = 64.0


class DueBuckets:
    """The rows of one area. When the time of one changes, it is put again."""

    def __init__(self, rows: RestingRows) -> None:
        self._all = rows
        self._buckets: dict[int, array[int]] = {}
        self._keys: list[int] = []
        self._dues, self._rows, self._at = array("d"), array("I"), 0
        """The front: times and rows, from the position on."""
        self._front_key = -1
        """The last bucket that went into the front."""
        self.item_count = 0
        """Rows in here, gone ones too."""

    def put(self, row: int) -> None:
        """Add a row, due when its column says."""
        due_at = self._all.due_at[row]
        key = int(due_at // WIDTH_S)
        self.item_count += 1
        if key <= self._front_key:
            at = bisect_right(self._dues, due_at, self._at)
            self._dues.insert(at, due_at)
            self._rows.insert(at, row)
            return
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = array("I")
            heapq.heappush(self._keys, key)
        bucket.append(row)

    def next_due(self) -> float | None:
        """When the first row is due, or its bucket begins; None: none waits."""
        self._drop_stale()
        first = self._dues[self._at] if self._at < len(self._dues) else None
        if not self._keys:
            return first
        begins_at = self._keys[0] * WIDTH_S
        return begins_at if first is None else min(first, begins_at)

    def is_due(self, now: float) -> bool:
        """Whether a row is due."""
        while self._keys and self._keys[0] * WIDTH_S <= now:
            self._ripen()
        self._drop_stale()
        return self._at < len(self._dues) and self._dues[self._at] <= now

    def pop(self, now: float) -> int | None:
        """Take out the row that is due first; None: none is due."""
        if not self.is_due(now):
            return None
        row = self._rows[self._at]
        self._at += 1
        self.item_count -= 1
        return row

    def rebuild(self, rows: Iterable[int]) -> None:
        """Have these rows and no others."""
        self._buckets, self._keys, self.item_count = {}, [], 0
        self._dues, self._rows, self._at, self._front_key = array("d"), array("I"), 0, -1
        for row in rows:
            self.put(row)

    def _ripen(self) -> None:
        """The time of the first bucket has come: what is left of the front is earlier than all of it."""
        key = heapq.heappop(self._keys)
        self._front_key = key
        bucket, due_at = self._buckets.pop(key), self._all.due_at
        rows = sorted((row for row in bucket if due_at[row] // WIDTH_S == key), key=due_at.__getitem__)
        self.item_count -= len(bucket) - len(rows)
        self._cut()
        self._rows.extend(rows)
        self._dues.extend(map(due_at.__getitem__, rows))

    def _drop_stale(self) -> None:
        while self._at < len(self._dues) and not self._all.is_waiting(self._rows[self._at], self._dues[self._at]):
            self._at += 1
            self.item_count -= 1
        if self._at > 1000 and self._at * 2 > len(self._dues):
            self._cut()

    def _cut(self) -> None:
        del self._dues[: self._at]
        del self._rows[: self._at]
        self._at = 0
