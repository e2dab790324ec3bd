"""Entries that are out for delivery: how many in all and of each message, since when, and who waits for room.

*Rules*: a bound on all entries together, deliveries and bounces, split so that neither starves the other. Room is reserved
before the provider is asked, and what it did not need is released after its answer.

*Not here*: entries that are out for a report (`queue.bounces`); the shares of senders (`deliver.jobs.room`).
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Message

REPORT_SHARE = 10
"""One part in so many of `max_out` is kept for bounces: neither deliveries nor reports starve the others."""


def split_out(total: int) -> tuple[int, int]:
    """Split the bound of entries that are out: for deliveries, for bounces. Each is at least 1; 0 is no limit for both."""
    if not total:
        return 0, 0
    share = max(1, total // REPORT_SHARE)
    return max(1, total - share), share


class OutEntries:
    """At most `limit` entries (0: no limit). `count`: entries that are out, or are reserved; read only."""

    def __init__(self, clock: IReactorTime, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._messages: dict[SpoolId, tuple[int, float | None]] = {}
        """Of each message: its entries that are out, and when the first was taken (None: before the clock jumped)."""
        self._waiting: list[Deferred[None]] = []
        self.count = 0

    def reload(self, limit: int) -> None:
        """Set another bound, for entries to come."""
        self._limit = limit
        self.tell_of_room()

    # in and out

    def reserve(self, wanted: int) -> int:
        """Reserve room for `wanted` entries, or for as many as there is room for. Return how many; 0: no room."""
        if self._limit:
            wanted = min(wanted, self._limit - self.count)
        if wanted <= 0:
            return 0
        self.count += wanted
        return wanted

    def on_taken(self, messages: list[Message], reserved: int, now: float) -> list[Message]:
        """Count these entries as out since `now`, and release the rest of the room that was reserved for them."""
        count = 0
        out = self._messages
        for message in messages:
            number = len(message.entries)
            count += number
            known = out.get(message.spool_id)
            out[message.spool_id] = (number, now) if known is None else (known[0] + number, known[1])
        self._release(reserved - count)
        return messages

    def on_not_taken(self, failure: Failure, reserved: int) -> Failure:
        """Release the room: the provider failed."""
        self._release(reserved)
        return failure

    def come_back(self, spool_id: SpoolId, count: int) -> bool:
        """Count so many entries of the message as no longer out. Return whether its last one came back now."""
        known = self._messages.pop(spool_id, None)
        if known is None:
            return False
        left = known[0] - count
        if left > 0:
            self._messages[spool_id] = left, known[1]
        else:
            count = known[0]
        self._release(count)
        return left <= 0

    def is_out(self, spool_id: SpoolId) -> bool:
        """Whether entries of this message are out."""
        return spool_id in self._messages

    def taken_at(self, spool_id: SpoolId) -> float | None:
        """Return when the first of the message's entries was taken; None: unknown, or before the clock jumped."""
        known = self._messages.get(spool_id)
        return known[1] if known is not None else None

    def forget_times(self) -> None:
        """The clock jumped: the times at which entries were taken mean nothing any more."""
        self._messages = {spool_id: (count, None) for spool_id, (count, _) in self._messages.items()}

    # room

    @property
    def has_room(self) -> bool:
        """Whether more entries may be taken."""
        return not self._limit or self.count < self._limit

    def when_room(self) -> Deferred[None]:
        """Fires when entries came back, of deliveries or bounces. May fire in vain."""
        room: Deferred[None] = Deferred()
        self._waiting.append(room)
        return room

    def tell_of_room(self) -> None:
        """Fire those that wait for room, in a turn of its own: the caller that settles does not expect to be asked to
        take."""
        waiting, self._waiting = self._waiting, []
        for deferred in waiting:
            self._clock.callLater(0, deferred.callback, None)

    def _release(self, count: int) -> None:
        self.count -= count
        if count and self._waiting:
            self.tell_of_room()
