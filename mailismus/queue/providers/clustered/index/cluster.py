"""One cluster file as the index in memory knows it: committed length, live lines, and lines that may not be handed out.

Nothing of a line is in memory, but for lines that were read and are due soon (`waiting`). Knows no file and no clock.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager

import attrs

from mailismus.queue.interface import Latest, Predicate
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine
from mailismus.queue.providers.clustered.index.waiting_lines import WaitingLines

MAX_LIMITS = 16
"""Limits of one cluster; what an earlier one took away is bounded by the newer ones."""


@attrs.frozen
class Limit:
    """Until when lines between two offsets may wait."""

    first: int
    end: float
    latest: Latest


class Cluster:
    """One cluster file."""

    __slots__ = (
        "_readers",
        "flushes",
        "id",
        "length",
        "limits",
        "live",
        "next_visit",
        "not_before",
        "owed",
        "path",
        "taken",
        "unread_at",
        "waiting",
    )

    def __init__(self, cluster_id: ClusterId, path: str, length: int | None) -> None:
        self.id = cluster_id
        self.path = path
        self.length = length
        """Bytes that are committed; None: all of the file."""
        self.live: int | None = None
        """Live lines, out or not; None: it was found at the start and not read yet."""
        self.taken: set[int] = set()
        """Offsets of lines that are out."""
        self.owed: set[int] = set()
        """Offsets of lines that are settled durably and not marked yet."""
        self.not_before: dict[int, float] = {}
        """Offsets of lines that were given back or flushed, and from when on they may be taken, whatever they say."""
        self.next_visit: float | None = None
        """When it is worth a visit; None: nothing waits in it, as far as is known."""
        self.waiting: WaitingLines | None = None
        """Lines that were read and are in memory."""
        self.unread_at: float | None = None
        """When a line may be due that is not in memory: the file is worth a read. None: there is none."""
        self.flushes: list[Predicate] = []
        """What is due at the next read whatever its time."""
        self.limits: list[Limit] = []
        """Of times that lines of it tell, since the clock was set."""
        self._readers: dict[object, set[int]] = {}

    def grow(self, length: int, lines: int) -> None:
        """So many live lines were appended, up to this length."""
        self.length = length
        self.live = (self.live or 0) + lines

    def count_live(self, lines: int) -> None:
        """So many live lines were counted."""
        self.live = lines

    def begin_read(self) -> list[Predicate]:
        """Return the flushes that the read which begins now serves; later ones, and a later time, are for the next read."""
        flushes, self.unread_at, self.flushes = self.flushes, None, []
        return flushes

    def put_flushes_back(self, flushes: list[Predicate]) -> None:
        """The read failed: the next one serves these too."""
        self.flushes = flushes + self.flushes

    def is_hidden(self, offset: int) -> bool:
        """Whether this line is not to be handed out."""
        return offset in self.taken or offset in self.owed

    @contextmanager
    def reading(self) -> Iterator[Container[int]]:
        """For as long as the file is read: offsets of lines that are marked meanwhile. What is read of them may not say yet
        that they are over, and they are owed no more."""
        reader = object()
        marked = self._readers[reader] = set[int]()
        try:
            yield marked
        finally:
            del self._readers[reader]

    def heed_limits(self, lines: Iterable[FoundLine]) -> None:
        """Lines that were just read tell the times that count."""
        if self.limits:
            for line in lines:
                entry = line.entry
                for limit in self.limits:
                    if limit.first <= line.offset < limit.end:
                        entry.due_at = min(entry.due_at, limit.latest(self.id.area, entry.attempts, entry.due_at))

    def mark_finished(self, offsets: frozenset[int]) -> None:
        """These lines, owed before, say durably that they are over."""
        self.owed -= offsets
        for marked in self._readers.values():
            marked |= offsets

    @property
    def is_empty(self) -> bool:
        """No live line is left: the file may go."""
        return self.live == 0
