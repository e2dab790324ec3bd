"""Tally: counts of search results (pure)."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, AreaCount, Gap, Message, Summary


class Tally:
    """Counts entries, messages and bytes of each area as messages come, also a message in several parts. Only the ids of
    messages that may come again are kept."""

    def __init__(self) -> None:
        self._counts = {area: [0, 0, 0] for area in Area}
        self._whole = [0, 0]
        self._seen: set[tuple[SpoolId, Area]] = set()

    def add(self, message: Message) -> None:
        """Count the entries of a message that were found together."""
        spool_id = message.spool_id
        is_whole = len(message.entries) == message.recipient_count
        here: set[Area] = set()
        is_new = is_whole or not any((spool_id, area) in self._seen for area in Area)
        for entry in message.entries:
            self._counts[entry.area][0] += 1
            here.add(entry.area)
        for area in here:
            if not is_whole:
                if (spool_id, area) in self._seen:
                    continue
                self._seen.add((spool_id, area))
            self._counts[area][1] += 1
            self._counts[area][2] += message.stored_bytes
        if is_new and here:
            self._whole[0] += 1
            self._whole[1] += message.stored_bytes

    def whole(self) -> AreaCount:
        """Return the counts of all areas together: a message with entries in two of them is one."""
        return AreaCount(sum(count[0] for count in self._counts.values()), *self._whole)

    def summary(self, gaps: tuple[Gap, ...] = ()) -> Summary:
        """Return the counts so far. `gaps`: entries that could not be read."""
        return Summary({area: AreaCount(*count) for area, count in self._counts.items()}, exact=not gaps, gaps=gaps)
