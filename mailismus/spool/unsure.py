"""Messages of which it is not known whether a live entry is left: gathered here until a walk has looked (pure).

Two sets: what the running walk was asked about, and what waits for the next one. An id moves from the first back to the
second when something becomes of it while the walk runs; it leaves the first when the walk sees a live line of it.
Bounded: what finds no room is turned away and counted. Its bytes stay; it can be offered again from the names in the
silos.
"""

from __future__ import annotations

from mailismus.mail.ids import SpoolId

MOST_UNSURE = 50_000
"""Ids gathered at once, about 5 MB at worst: more would make the end of a walk, and the unlinks it brings, a stall."""


class UnsureIds:
    """The ids that a walk is to resolve, `most` at once. No order."""

    __slots__ = ("_asked", "_most", "_waiting", "missed")

    def __init__(self, most: int = MOST_UNSURE) -> None:
        self._most = most
        self._waiting: set[SpoolId] = set()
        self._asked: set[SpoolId] = set()
        self.missed = 0
        """How many found no room, ever. While it grows, the silos hold what no set knows of."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._asked)

    def __contains__(self, spool_id: SpoolId) -> bool:
        return spool_id in self._waiting or spool_id in self._asked

    @property
    def is_full(self) -> bool:
        """No room for another one: time for a walk."""
        return len(self._waiting) + len(self._asked) >= self._most

    @property
    def is_waiting(self) -> bool:
        """There is something to ask the next walk about."""
        return bool(self._waiting)

    def add(self, spool_id: SpoolId) -> bool:
        """Ask the next walk about it; harmless when repeated. False: no room, it was counted in `missed`.

        To be called when its last settle is durable. Never for a message whose lines are not durable yet (a draft, or
        what a commit is under way for): no walk would find a line, and its bytes would go.
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
        """Nobody needs to know any more; harmless when it is not here."""
        self._waiting.discard(spool_id)
        self._asked.discard(spool_id)

    def ask(self) -> set[SpoolId]:
        """A walk begins: all that waits is asked about. Gives the set itself, from which the walk discards what lives."""
        assert not self._asked, "one walk at a time"
        self._asked, self._waiting = self._waiting, self._asked
        return self._asked

    def ask_again(self, spool_id: SpoolId) -> None:
        """What this walk says of it doesn't count: it waits for the next. Harmless when it is not asked about."""
        if spool_id in self._asked:
            self._asked.remove(spool_id)
            self._waiting.add(spool_id)

    def answered(self) -> set[SpoolId]:
        """The walk is over: gives what is still asked about, and holds it no more."""
        asked, self._asked = self._asked, set()
        return asked

    def unanswered(self) -> None:
        """The walk was cut short: whatever it was asked about waits for the next."""
        self._waiting |= self._asked
        self._asked = set()
