"""Dating: messages with their arrival by the present clock, for reports and listings.

The stored arrival of a message is wrong if the clock was set since. `queue.clock.ages` knows by how much, for messages of
this run. Before the first jump this module does nothing.
"""

from __future__ import annotations

import attrs

from mailismus.queue.clock.ages import Ages
from mailismus.queue.clock.clockwatch import ClockWatch
from mailismus.queue.interface import Filter, Message, Page


class Dating:
    """Dates messages that leave the queue to be shown. Messages are copied, never changed."""

    def __init__(self, watch: ClockWatch, ages: Ages) -> None:
        self._watch, self._ages = watch, ages

    def date(self, message: Message) -> Message:
        """Return this message, dated."""
        arrived_at = self._ages.arrived_at(message.spool_id, message.received_at)
        return message if arrived_at == message.received_at else attrs.evolve(message, received_at=arrived_at)

    def date_bounces(self, messages: list[Message]) -> list[Message]:
        """Return these bounces, dated. Both times of a bounce that failed before the jump are by the old clock, and stay."""
        if not self._ages.has_jumped:
            return messages
        jumped_at = self._watch.jumped_at
        return [
            self.date(message) if max(entry.due_at for entry in message.entries) >= jumped_at else message
            for message in messages
        ]

    def date_page(self, page: Page) -> Page:
        """Return a page of a search, dated."""
        if not self._ages.has_jumped:
            return page
        return attrs.evolve(page, messages=tuple(map(self.date, page.messages)))

    def date_filter(self, wanted: Filter) -> Filter:
        """Return the same filter, for messages that are dated."""
        if not self._ages.has_jumped:
            return wanted
        matches = wanted.matches
        return attrs.evolve(wanted, matches=lambda message, entry: matches(self.date(message), entry))
