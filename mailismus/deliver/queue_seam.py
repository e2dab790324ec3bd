"""What delivering needs of the queue manager; the real one is `queue.manager.QueueManager`.

Everything is called in the reactor's thread. A Deferred that fails fails with `errors.StorageError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.queue.disposition import Disposition
from mailismus.queue.interface import Area, Entry, IContent, Message


class DeliveryQueue(Protocol):
    """Entries out, outcomes back."""

    def take(self, area: Area, limit: int) -> Deferred[list[Message]]:
        """At most `limit` entries that are due; they are ours until settled or given back."""

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when something may be taken, now or later. May fire in vain; not for what only waits for its time."""

    def next_due(self, area: Area) -> float | None:
        """When (UTC seconds) the next waiting entry is due; None: none waits."""

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        """Untried: can be taken again in `delay_s` seconds. No attempt is counted."""

    def age_s(self, message: Message) -> float:
        """Seconds since the message arrived, by a clock that does not jump as far as it can be known."""

    def settle(self, message: Message, results: Sequence[tuple[Entry, Outcome]]) -> Sequence[Disposition]:
        """What became of these entries, once for each; gives what the queue does about each, in order. Durable soon."""

    @property
    def may_begin(self) -> bool:
        """False: too many outcomes are not durable; begin nothing that a crash could repeat."""

    def when_may_begin(self) -> Deferred[None]:
        """Fires when `may_begin` is true."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """The content: at once when at hand, else in pieces. Raises or fails with `StorageError`."""
