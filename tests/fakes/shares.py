"""Shares of senders for tests (`queue.interface.Shares`)."""

from __future__ import annotations

from collections.abc import Mapping


class Most:
    """At most so many more entries of each sender in one take: `most`, or what `of` says of it."""

    def __init__(self, most: int, of: Mapping[bytes, int] | None = None) -> None:
        self._most, self._of = most, of or {}
        self.given: dict[bytes, int] = {}
        self.asked: list[tuple[bytes, int]] = []
        """Each question: sender, and how many were wanted."""
        self.refused: set[bytes] = set()
        """Senders that were allowed fewer than wanted."""

    def room_for(self, sender: bytes, wanted: int) -> int:
        self.asked.append((sender, wanted))
        given = self.given.get(sender, 0)
        room = max(0, min(wanted, self._of.get(sender, self._most) - given))
        self.given[sender] = given + room
        if room < wanted:
            self.refused.add(sender)
        return room
