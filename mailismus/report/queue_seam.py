"""What reporting needs of the queue manager; the real one is `queue.manager.QueueManager`.

Everything is called in the reactor's thread. A Deferred that fails fails with `errors.StorageError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, IContent, IDraft, Message


class ReportQueue(Protocol):
    """Bounces out, reports in."""

    def take(self, area: Area, limit: int) -> Deferred[list[Message]]:
        """Bounces whose round is over, oldest first; those of one message together, so the last may go beyond `limit`."""

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when something may be taken, now or later. May fire in vain; not for what only waits for its time."""

    def next_due(self, area: Area) -> float | None:
        """When (UTC seconds) the next waiting entry is due; None: none waits."""

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        """Untried: can be taken again in `delay_s` seconds."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """The content: at once when at hand, else in pieces. Raises or fails with `StorageError`."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable` when it could not be committed now."""

    def report(self, draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        """The draft is the report of these bounces: one commit. On failure they are still out, the draft is abandoned."""

    def discard(self, message: Message) -> Deferred[None]:
        """These bounces are over without a report."""
