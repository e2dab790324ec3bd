"""One cluster file as the index in memory knows it: committed length, live lines, and lines that may not be handed out.

Nothing of a line is in memory, but for lines that were read and are due soon (`waiting`). Knows no file and no clock.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager

import attrs

from mailismus.queue.interface import Latest, Predicate
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine
from mailismus.queue.providers.clustered.index.waiting_lines import WaitingLines

MAX_LIMITS = 16
"""Limits of one cluster; the effect of an earlier one is bounded by the newer ones."""


@attrs.frozen
class Limit:
    """The latest time up to which lines between two offsets may wait."""

    first: int
    end: float
    latest: Latest


@attrs.frozen
class Flush:
    """Lines before this offset that the predicate matches are due, whatever time they have."""

    end: float
    is_wanted: Predicate

    def matches(self, line: FoundLine) -> bool:
        """Whether the line is due by this flush. Lines that came later wait for their own time."""
        return line.offset < self.end and self.is_wanted(line.message, line.entry)


class Cluster:
    """One cluster file in memory."""

    __slots__ = (
        "_readers",
        "flushes",
        "held_for",
        "id",
        "length",
        "limits",
        "live",
        "next_scan",
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
        """Committed bytes; None: the whole file."""
        self.live: int | None = None
        """Number of live lines, out or not; None: the start found the file, and nothing has read it yet."""
        self.taken: set[int] = set()
        """Offsets of lines that are out."""
        self.owed: set[int] = set()
        """Offsets of lines whose settlement is durable and that are not marked as done in the file yet."""
        self.not_before: dict[int, float] = {}
        """Offsets of lines that were given back or flushed, with the time from which they may be taken. It replaces their
        own."""
        self.next_scan: float | None = None
        """Time of its next due scan; None: it has no waiting line, as far as is known."""
        self.waiting: WaitingLines | None = None
        """Lines that were read and are in memory."""
        self.held_for: set[bytes] = set()
        """Senders in whose lines of clusters it stands (`held_clusters`)."""
        self.unread_at: float | None = None
        """Time at which a line that is not in memory may be due, so that the file must be read. None: there is no such
        line."""
        self.flushes: list[Flush] = []
        """Lines that these match are due at the next read."""
        self.limits: list[Limit] = []
        """Limits of the times in its lines, since the clock was set."""
        self._readers: dict[object, set[int]] = {}

    def grow(self, length: int, lines: int) -> None:
        """Note that `lines` live lines were appended; `length`: the committed bytes with them."""
        self.length = length
        self.live = (self.live or 0) + lines

    def count_live(self, lines: int) -> None:
        """Set the number of live lines, which a read has counted."""
        self.live = lines

    @property
    def end(self) -> float:
        """The offset behind the lines that are there now."""
        return math.inf if self.length is None else self.length

    def flush(self, is_wanted: Predicate) -> None:
        """Make the lines that match, of those that are there now, due at the next read."""
        self.flushes.append(Flush(self.end, is_wanted))

    def begin_read(self) -> list[Flush]:
        """Return the flushes that the read which begins now serves. Later flushes, and a later time, are for the next
        read."""
        flushes, self.unread_at, self.flushes = self.flushes, None, []
        return flushes

    def put_flushes_back(self, flushes: list[Flush]) -> None:
        """Leave these flushes to the next read: this one failed."""
        self.flushes = flushes + self.flushes

    def is_hidden(self, offset: int) -> bool:
        """Whether this line must not be handed out."""
        return offset in self.taken or offset in self.owed

    @contextmanager
    def reading(self) -> Iterator[Container[int]]:
        """While the file is read: the offsets of lines that are marked meanwhile. The bytes that were read of them may not
        show the mark yet, and they are owed no more."""
        reader = object()
        marked = self._readers[reader] = set[int]()
        try:
            yield marked
        finally:
            del self._readers[reader]

    def apply_limits(self, lines: Iterable[FoundLine]) -> None:
        """Apply the limits to lines that were just read."""
        if self.limits:
            for line in lines:
                entry = line.entry
                for limit in self.limits:
                    if limit.first <= line.offset < limit.end:
                        entry.due_at = min(entry.due_at, limit.latest(self.id.area, entry.attempts, entry.due_at))

    def mark_finished(self, offsets: frozenset[int]) -> None:
        """Note that these lines, owed before, are durably marked as done."""
        self.owed -= offsets
        for marked in self._readers.values():
            marked |= offsets

    @property
    def is_empty(self) -> bool:
        """Whether no live line is left, so that the file may be removed."""
        return self.live == 0
