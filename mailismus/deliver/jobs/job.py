"""The job: the recipients of a message for one next hop, which share a transaction; and the times for its log lines.

It has plain slots because one is made for every message (hot path).
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.deliver.jobs.concurrency import Concurrency
from mailismus.deliver.jobs.conversion import SevenBitForm
from mailismus.deliver.jobs.smtputf8 import needs_utf8
from mailismus.deliver.log_line import NO_FIELDS, LogFields
from mailismus.deliver.routes.route import NextHop
from mailismus.queue.interface import Entry, Message
from mailismus.smtp.client.transaction import Transaction

NOWHERE = NextHop("", 0)


def final_recipients(entries: Sequence[Entry]) -> list[bytes]:
    """Return where these entries are sent, in their order (hot path: most jobs have one)."""
    if len(entries) == 1:
        entry = entries[0]
        return [entry.recipient if entry.words is None else entry.final_recipient]
    return [entry.recipient if entry.words is None else entry.final_recipient for entry in entries]


class Job(Transaction):
    """Entries of one message with the same route."""

    __slots__ = (
        *("begun_at", "concurrency", "entries", "fields", "form", "message"),
        *("next_hop", "put_backs", "queued_at", "setup_s"),
    )

    def __init__(
        self,
        message: Message,
        entries: list[Entry],
        queued_at: float,
        next_hop: NextHop = NOWHERE,
        concurrency: Concurrency | None = None,
    ) -> None:
        """`next_hop`: `NOWHERE` for what stays here. `concurrency`: of its message; None: the message has no other job."""
        self.message = message
        self.entries = entries
        self.next_hop = next_hop
        self.concurrency = concurrency
        self.queued_at = queued_at
        """When it was taken from the queue: monotonic seconds, like `begun_at`."""
        self.begun_at = queued_at
        self.setup_s = 0.0
        """The share of the waiting time that the connection's set-up took."""
        self.fields = NO_FIELDS
        """What its log line has behind `delays=`: the level of TLS, the accepted credentials, and whether the content was
        converted."""
        self.put_backs = 0
        """How often it was begun and not tried."""
        self.form: SevenBitForm | None = None
        """The form in which this host gets the message; None: as it is."""
        recipients = final_recipients(entries)
        Transaction.__init__(self, message.sender, recipients, message.size_bytes, message.eightbit)
        self.utf8 = needs_utf8(message.words, message.sender, recipients)

    def begin(self, now: float, fields: LogFields = NO_FIELDS) -> None:
        """Note when its attempt begins, or when it is settled without one. Monotonic seconds. `fields`: as `Job.fields`."""
        self.begun_at, self.fields = now, fields

    def extend(self, entries: list[Entry]) -> None:
        """Add entries of the message with the same route. Its attempt has not begun."""
        self.entries = [*self.entries, *entries]
        self._count_recipients()

    def cut(self, count: int) -> None:
        """Remove the first entries, which another job has. Its attempt has not begun."""
        self.entries = self.entries[count:]
        self._count_recipients()

    def _count_recipients(self) -> None:
        self.recipients = final_recipients(self.entries)
        self.left = len(self.recipients)
        self._note_utf8()

    def _note_utf8(self) -> None:
        """Note whether it needs SMTPUTF8: an act may redirect mail that came without it to such an address."""
        self.utf8 = needs_utf8(self.message.words, self.sender, self.recipients)

    def take_form(self, form: SevenBitForm) -> None:
        """Send the message as 7-bit content, to this host."""
        self.form = form
        self.size_bytes = form.size_bytes
        self.eightbit = False

    def take_addresses(self, sender: bytes, recipients: list[bytes | None]) -> None:
        """Use these addresses, in ASCII, for this host, without the recipients that have None in their place: they are
        settled."""
        self.entries = [entry for entry, recipient in zip(self.entries, recipients, strict=True) if recipient is not None]
        self.sender = sender
        self.recipients = [recipient for recipient in recipients if recipient is not None]
        self.left = len(self.recipients)
        self.utf8 = False

    def name_recipients(self, recipients: list[bytes]) -> None:
        """Use these addresses for the recipients, in their order, for this host."""
        self.recipients = recipients

    def charge(self, setup_s: float) -> None:
        """Note how much of its wait was the set-up of the connection, in seconds."""
        self.setup_s = setup_s

    def remaining(self) -> list[Entry]:
        """Entries without an outcome of their own, in order."""
        settled = self.settled
        if not settled:
            return self.entries
        return [entry for position, entry in enumerate(self.entries) if position not in settled]

    def rewind(self) -> None:
        """Reset the job for another connection, without its settled recipients."""
        self.entries = self.remaining()
        self.recipients = final_recipients(self.entries)
        self.settled = None
        self.put_backs += 1
        if self.form is not None:
            self.form = None
            self.size_bytes, self.eightbit = self.message.size_bytes, self.message.eightbit
        self.sender = self.message.sender
        self._note_utf8()
        self.renew()
