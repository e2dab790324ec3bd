"""What reception needs of the queue's manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import IDraft


class Acceptance(Protocol):
    """The manager, as far as the submitting task sees it."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `errors.Unavailable` when it could not be committed now."""

    def accept(self, draft: IDraft, envelope: Envelope) -> Deferred[Sequence[SpoolId]]:
        """Take responsibility. Fires when message and entries are durable, not before; fails with `errors.StorageError`."""
