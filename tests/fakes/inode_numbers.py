"""Numbers of inodes, as file systems give them: the number of a file that is gone is the next new file's."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable


class InodeNumbers:
    """A number for each file that has a name or is open; one that was given back is given out again, the lowest first."""

    def __init__(self) -> None:
        self._next = 11  # the first one of a file on ext4
        self._free: list[int] = []
        self._used: Counter[int] = Counter()

    def take(self) -> int:
        """A number for a new file, which has one holder: its name."""
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number, self._next = self._next, self._next + 1
        self._used[number] = 1
        return number

    def claim(self, number: int) -> None:
        """This number is the one of a file that is there already, under one name."""
        while self._next <= number:
            heapq.heappush(self._free, self._next)
            self._next += 1
        assert number in self._free, f"two files have the number {number}"
        self._free.remove(number)
        heapq.heapify(self._free)
        self._used[number] = 1

    def hold(self, number: int) -> None:
        """Another name leads to the file, or it was opened."""
        self._used[number] += 1

    def release(self, number: int) -> None:
        """A name is gone, or the file was closed. With the last holder the number is free."""
        self._used[number] -= 1
        if not self._used[number]:
            del self._used[number]
            heapq.heappush(self._free, number)

    def keep(self, holders: Iterable[int]) -> None:
        """The process is gone with all that it had open: only these names hold numbers, a number for each name."""
        gone = self._used
        self._used = Counter(holders)
        for number in gone.keys() - self._used.keys():
            heapq.heappush(self._free, number)
