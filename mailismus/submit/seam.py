"""The seam between reception and the queue manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import IDraft


class Acceptance(Protocol):
    """The part of the queue manager that reception uses."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `errors.Unavailable` if the queue could not commit it now."""

    def accept(self, draft: IDraft, envelope: Envelope) -> Deferred[Sequence[SpoolId]]:
        """Take responsibility for a message. Fires when message and entries are durable, not before; fails with
        `errors.StorageError`."""
