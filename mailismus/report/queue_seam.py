"""The queue manager as reporting uses it; implemented by `queue.manager.QueueManager`.

Call everything in the reactor's thread. A Deferred that fails fails with `errors.StorageError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.interface import Area, Entry, Message


class ReportQueue(Protocol):
    """Takes bounces out of the queue and reports in."""

    def take(self, area: Area, limit: int) -> Deferred[list[Message]]:
        """Take bounces whose round is over, oldest first; those of one message together, so the last may exceed `limit`."""

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when there may be bounces to take. It may be wrong; it does not fire for bounces that are not due."""

    def next_due(self, area: Area) -> float | None:
        """When the next waiting entry is due (UTC seconds); None: none waits."""

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        """Return untried bounces, to be taken again in `delay_s` seconds."""

    def may_try(self, spool_id: SpoolId) -> bool:
        """Whether the bounces of this message may be reported now; False: they are given back."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """The content: bytes if it is in memory, else in pieces. Raises or fails with `StorageError`."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable` if it could not be committed now."""

    def report(self, draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        """Commit the draft as the report of these bounces, and end them. On failure they are still out, the draft is
        abandoned."""

    def discard(self, message: Message) -> Deferred[None]:
        """End these bounces without a report."""
