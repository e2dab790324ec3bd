"""The seam between reception and the queue manager."""

from __future__ import annotations

from typing import Protocol

from mailismus.mail.envelope import Envelope
from mailismus.queue.content import IDraft
from mailismus.queue.interface import CommitListener, M


class Acceptance(Protocol):
    """The part of the queue manager that reception uses."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `errors.Unavailable` if the queue could not commit it now."""

    def accept(self, draft: IDraft, envelope: Envelope, listener: CommitListener[M], mark: M) -> None:
        """Take responsibility for a message. The listener is told, by `mark`, when message and entries are durable, not
        before and not within this call; a failure may be told within it."""
