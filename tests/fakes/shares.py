"""Shares of senders for tests (`queue.interface.Shares`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class Most:
    """At most so many more entries of each sender in one take: `most`, or what `of` says of it."""

    def __init__(self, most: int, of: Mapping[bytes, int] | None = None) -> None:
        self._most, self._of = most, of or {}
        self.given: dict[bytes, int] = {}
        self.asked: list[tuple[bytes, int]] = []
        """Each question: sender, and how many were wanted."""
        self.cut: list[int] = []
        """What was wanted of messages of which there may be more."""
        self.refused: set[bytes] = set()
        """Senders that were allowed fewer than wanted."""

    def room_for(self, sender: bytes, wanted: int, *, is_cut: bool = False) -> int:
        self.asked.append((sender, wanted))
        if is_cut:
            self.cut.append(wanted)
        given = self.given.get(sender, 0)
        room = max(0, min(wanted, self._of.get(sender, self._most) - given))
        self.given[sender] = given + room
        if room < wanted:
            self.refused.add(sender)
        return room

    def in_order(self, senders: Iterable[bytes]) -> Sequence[bytes]:
        return list(senders)
