"""Messages that may or may not have a live entry: collected until a reference scan decides (pure).

Two sets: ids that the running scan must decide, and ids that wait for the next one. An id moves from the first back to the
second when its message changes during the scan. It leaves the first when the scan sees a live line. The sets are bounded: an
id that does not fit is rejected and counted. Its bytes stay; the names in the silos allow to offer it again.
"""

from __future__ import annotations

from mailismus.mail.ids import SpoolId

MAX_UNSURE = 50_000
"""Ids held at once, about 5 MB at worst: more would make the end of a scan, and the unlinks after it, a stall."""


class UnsureIds:
    """Ids that a reference scan decides, at most `limit` at once. No order."""

    __slots__ = ("_asked", "_limit", "_waiting", "missed")

    def __init__(self, limit: int = MAX_UNSURE) -> None:
        self._limit = limit
        self._waiting: set[SpoolId] = set()
        self._asked: set[SpoolId] = set()
        self.missed = 0
        """Ids rejected for lack of room since the start. While it grows, the silos hold files that neither set knows."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._asked)

    def __contains__(self, spool_id: SpoolId) -> bool:
        return spool_id in self._waiting or spool_id in self._asked

    @property
    def is_full(self) -> bool:
        """Whether there is no more room, so a scan is urgent."""
        return len(self._waiting) + len(self._asked) >= self._limit

    @property
    def is_waiting(self) -> bool:
        """Whether an id waits for the next scan."""
        return bool(self._waiting)

    def add(self, spool_id: SpoolId) -> bool:
        """Add an id for the next scan; harmless when repeated. False: no room; it is counted in `missed`.

        Call it when the message's last settle is durable. Never for a message whose lines are not durable yet (a draft, or
        one whose commit is under way): no scan would find a line, and its bytes would be released.
        """
        if spool_id in self._waiting:
            return True
        if spool_id in self._asked:
            self._asked.remove(spool_id)
        elif self.is_full:
            self.missed += 1
            return False
        self._waiting.add(spool_id)
        return True

    def discard(self, spool_id: SpoolId) -> None:
        """Remove an id that needs no decision; harmless when it is absent."""
        self._waiting.discard(spool_id)
        self._asked.discard(spool_id)

    def ask(self) -> set[SpoolId]:
        """Begin a scan: give it all ids that wait. Returns the set itself, from which the scan discards live ids."""
        assert not self._asked, "one scan at a time"
        self._asked, self._waiting = self._waiting, self._asked
        return self._asked

    def ask_again(self, spool_id: SpoolId) -> None:
        """Ignore what this scan finds of an id; it waits for the next. Harmless when this scan does not decide it."""
        if spool_id in self._asked:
            self._asked.remove(spool_id)
            self._waiting.add(spool_id)

    def answered(self) -> set[SpoolId]:
        """End a complete scan: return and forget the ids that it was to decide and did not discard."""
        asked, self._asked = self._asked, set()
        return asked

    def unanswered(self) -> None:
        """End an incomplete scan: all its ids wait for the next one."""
        self._waiting |= self._asked
        self._asked = set()
