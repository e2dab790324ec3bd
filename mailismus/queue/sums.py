"""Sums of a count: entries, messages and bytes of each area (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, AreaCount, Gap, Message, Summary


class LiveLines(NamedTuple):
    """Counts of the live lines of a file. A message with one recipient has one line; the others may have lines in several
    files."""

    entries: int
    lone_messages: int
    lone_bytes: int
    sizes: dict[SpoolId, int]
    """Content sizes of the messages that came with several recipients."""


class AreaSums:
    """Sums of one area. Messages that came with several recipients are kept by id: further lines of them may come."""

    __slots__ = ("entries", "lone_bytes", "lone_messages", "sizes")

    def __init__(self) -> None:
        self.entries = 0
        self.lone_messages = 0
        self.lone_bytes = 0
        self.sizes: dict[SpoolId, int] = {}
        """Content sizes of the messages that came with several recipients."""

    def add_entry(self, message: Message) -> None:
        """Add one entry of this message."""
        self.entries += 1
        if message.recipient_count == 1:
            self.lone_messages += 1
            self.lone_bytes += message.stored_bytes
        else:
            self.sizes[message.spool_id] = message.stored_bytes

    def add(self, found: LiveLines) -> None:
        """Add the counts of more lines."""
        self.entries += found.entries
        self.lone_messages += found.lone_messages
        self.lone_bytes += found.lone_bytes
        self.sizes.update(found.sizes)

    def count(self) -> AreaCount:
        """Return the counts of the area."""
        return AreaCount(self.entries, self.lone_messages + len(self.sizes), self.lone_bytes + sum(self.sizes.values()))


def new_sums() -> dict[Area, AreaSums]:
    """Return empty sums of every area."""
    return {area: AreaSums() for area in Area}


def summary_of(sums: Mapping[Area, AreaSums], gaps: tuple[Gap, ...] = (), refusing: str = "") -> Summary:
    """Return the counts of these sums. A message with entries in two areas counts in both. `gaps`: files that could not be
    read. `refusing`: see `Summary`."""
    return Summary({area: of_area.count() for area, of_area in sums.items()}, not gaps, gaps, refusing)
