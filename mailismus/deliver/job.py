"""The job: a message's recipients for one next hop, one transaction; and the times that its log lines tell.

Plain slots: one is made for every message (hot path).
"""

from __future__ import annotations

from mailismus.queue.interface import Entry, Message
from mailismus.smtp.client_transaction import Transaction


class Job(Transaction):
    """Entries of one message that go the same way."""

    __slots__ = ("begun_at", "entries", "message", "put_backs", "queued_at", "setup_s")

    def __init__(self, message: Message, entries: list[Entry], queued_at: float) -> None:
        self.message = message
        self.entries = entries
        self.queued_at = queued_at
        """When it was taken from the queue: monotonic seconds, as `begun_at`."""
        self.begun_at = queued_at
        self.setup_s = 0.0
        """What of the wait was the connection's set-up."""
        self.put_backs = 0
        """How often it was begun and not tried."""
        Transaction.__init__(
            self, message.sender, [entry.recipient for entry in entries], message.size_bytes, message.eightbit
        )

    def begin(self, now: float) -> None:
        """It is tried from now on, or given up now. Monotonic seconds."""
        self.begun_at = now

    def charge(self, setup_s: float) -> None:
        """So much of its wait was the connection's set-up."""
        self.setup_s = setup_s

    def remaining(self) -> list[Entry]:
        """Entries that were not refused at RCPT, in order."""
        refused = self.refused
        if not refused:
            return self.entries
        return [entry for position, entry in enumerate(self.entries) if position not in refused]

    def rewind(self) -> None:
        """Back to the start for another connection, without those that were refused."""
        self.entries = self.remaining()
        self.recipients = [entry.recipient for entry in self.entries]
        self.refused = None
        self.put_backs += 1
        self.renew()
