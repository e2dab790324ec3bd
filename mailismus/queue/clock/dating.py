"""Dating: messages with their arrival as the clock tells it now, for reports and listings.

What arrived before the clock was set tells its arrival by the old time. In this run it is known by how much that is wrong
(`queue.clock.ages`); until the clock jumps nothing is done here.
"""

from __future__ import annotations

import attrs

from mailismus.queue.clock.ages import Ages
from mailismus.queue.clock.clockwatch import ClockWatch
from mailismus.queue.interface import Filter, Message, Page


class Dating:
    """Of what goes out of the queue to be shown. Messages are copied, never changed."""

    def __init__(self, watch: ClockWatch, ages: Ages) -> None:
        self._watch, self._ages = watch, ages

    def date(self, message: Message) -> Message:
        """This message."""
        arrived_at = self._ages.arrived_at(message.spool_id, message.received_at)
        return message if arrived_at == message.received_at else attrs.evolve(message, received_at=arrived_at)

    def date_bounces(self, messages: list[Message]) -> list[Message]:
        """Bounces: those that failed before the clock jumped tell both by the old time."""
        if not self._ages.has_jumped:
            return messages
        jumped_at = self._watch.jumped_at
        return [
            self.date(message) if max(entry.due_at for entry in message.entries) >= jumped_at else message
            for message in messages
        ]

    def date_page(self, page: Page) -> Page:
        """A page of a search."""
        if not self._ages.has_jumped:
            return page
        return attrs.evolve(page, messages=tuple(map(self.date, page.messages)))

    def date_filter(self, wanted: Filter) -> Filter:
        """The same filter, asked about messages that are dated."""
        if not self._ages.has_jumped:
            return wanted
        matches = wanted.matches
        return attrs.evolve(wanted, matches=lambda message, entry: matches(self.date(message), entry))
