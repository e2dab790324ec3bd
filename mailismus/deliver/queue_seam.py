"""The queue manager as delivery uses it; implemented by `queue.manager.QueueManager`.

Call everything in the reactor's thread. A Deferred that fails fails with `errors.StorageError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area, Entry, Message, Shares
from mailismus.queue.outcome.disposition import Disposition


class DeliveryQueue(Protocol):
    """Takes entries out of the queue and outcomes back."""

    def take(self, area: Area, limit: int, shares: Shares | None = None) -> Deferred[list[Message]]:
        """Take at most `limit` due entries, of each sender as many as `shares` allow; the caller owns them until they are
        settled or given back."""

    def room_again(self) -> None:
        """Ask about senders again that were passed over in takes: see `queue.interface.IQueue.room_again`."""

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when there may be entries to take. It may be wrong; it does not fire for entries that are not due."""

    def next_due(self, area: Area) -> float | None:
        """When the next waiting entry is due (UTC seconds); None: none waits."""

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        """Return untried entries, to be taken again in `delay_s` seconds. No attempt is counted."""

    def ages_s(self, messages: Sequence[Message]) -> Sequence[float]:
        """Seconds since each message arrived, by a clock that does not jump as far as possible."""

    def settle(self, results: Sequence[tuple[Message, Sequence[Entry], Outcome]]) -> Sequence[Sequence[Disposition]]:
        """Record the outcomes of entries, once for each; return the queue's dispositions of each outcome, in order. Durable
        soon."""

    @property
    def in_doubt(self) -> int:
        """Outcomes that are settled and not durable: a crash now would repeat so many deliveries."""

    def when_may_begin(self) -> Deferred[None]:
        """Fires when fewer than `queue.not_durable.MAX_IN_DOUBT` outcomes are in doubt."""

    def may_try(self, spool_id: SpoolId) -> bool:
        """Whether what is out of this message may be tried now; False: it is given back. See `queue.interface.IQueue`."""

    def withheld(self) -> str:
        """Why nothing is handed out now, in words; empty: entries are."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """The content: bytes if it is in memory, else in pieces. Raises or fails with `StorageError`."""
