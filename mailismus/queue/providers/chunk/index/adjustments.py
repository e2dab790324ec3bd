"""Adjustments: what changed the times of entries that rest, and is not written down: flushes, and clocks that were set back
(pure).

*Rules*: an adjustment is for the times that were written down before it came: a message knows the number of the next one at
the time when it came to rest. The oldest are forgotten; what they did to a message's first time is known all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.queue.interface import Area, Entry, Filter, Latest, Message

MOST = 64
"""Adjustments that are remembered."""

_Adjust = Callable[[Message, Entry, float], float]


class Adjustments:
    """The adjustments of one run."""

    def __init__(self) -> None:
        self._all: list[_Adjust] = []
        self.next = 0
        """The number of the next one."""

    def add_limit(self, latest: Latest) -> None:
        """Nothing waits longer than this says (`IQueue.hasten`)."""
        self._add(lambda message, entry, due_at: min(due_at, latest(entry.area, entry.attempts, due_at)))

    def add_flush(self, wanted: Filter, now: float) -> None:
        """Deferred entries that match are due now."""
        self._add(
            lambda message, entry, due_at: min(due_at, now) if is_flushed(wanted, message, entry) else due_at,
        )

    def _add(self, adjust: _Adjust) -> None:
        self._all = [*self._all[-(MOST - 1) :], adjust]
        self.next += 1

    def due_at(self, message: Message, entry: Entry, since: int) -> float:
        """When an entry is due whose time was written down before the adjustment of this number."""
        due_at = entry.due_at
        for adjust in self._all[max(0, since - self.next + len(self._all)) :] if since < self.next else ():
            due_at = adjust(message, entry, due_at)
        return due_at


def is_flushed(wanted: Filter, message: Message, entry: Entry) -> bool:
    """Whether a flush means this entry."""
    return (
        entry.area is Area.DEFERRED
        and wanted.area in (None, Area.DEFERRED)
        and wanted.spool_id in (None, message.spool_id)
        and wanted.matches(message, entry)
    )
