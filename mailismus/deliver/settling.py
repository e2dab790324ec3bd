"""Settling: gives each outcome to the queue as soon as it is known, and writes the queue's disposition to the mail log.

Counters are plain numbers; metrics read them on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailismus.deliver.job import Job
from mailismus.deliver.log_line import format_delays, format_lines
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.observe.audit import Action
from mailismus.observe.audit_log import NO_AUDITS, Audits
from mailismus.observe.maillog import MailLog
from mailismus.observe.metrics import Distribution
from mailismus.queue.audited import audited
from mailismus.queue.interface import Entry, Message
from mailismus.queue.outcome.disposition import Disposition

QUEUED_S = (0.1, 0.5, 1, 5, 30, 60, 300, 900, 3600, 14400, 43200, 86400, 259200)
SENDING_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)
_LOCAL = b"local"
"""The host of an outcome that came from a maildir (`deliver.local`)."""


class DeliveryCounters:
    """Totals of delivery since the start."""

    def __init__(self) -> None:
        self.taken = 0
        """Entries taken from the queue."""
        self.delivered = self.deferred = self.failed = 0
        """Entries by outcome."""
        self.expired = 0
        """Deferred entries that have expired."""
        self.content_bytes = 0
        """Content bytes of successful transactions and local deliveries."""
        self.queued_s = Distribution(QUEUED_S)
        """From arrival to delivery, of each delivered entry."""
        self.sending_s = Distribution(SENDING_S)
        """Duration of transactions and local deliveries that delivered something."""
        self.given_back = 0
        """Entries given back untried."""
        self.in_doubt = 0
        """Entries that may have been sent (deferred)."""
        self.connections = self.connections_failed = 0
        self.transactions = 0
        self.local_deliveries = 0
        self.lookups = 0

    def count_taken(self, entries: int) -> None:
        self.taken += entries

    def count_outcome(self, kind: OutcomeKind, entries: int) -> None:
        """Count entries with an outcome of this kind."""
        if kind is OutcomeKind.DELIVERED:
            self.delivered += entries
        elif kind is OutcomeKind.DEFERRED:
            self.deferred += entries
        else:
            self.failed += entries

    def count_delivery(self, stored_bytes: int, entries: int, queued_s: float, sending_s: float) -> None:
        """Count a transaction or a local delivery that delivered so many entries."""
        self.content_bytes += stored_bytes
        self.queued_s.note(queued_s, entries)
        self.sending_s.note(sending_s)

    def count_expired(self, entries: int) -> None:
        self.expired += entries

    def count_given_back(self, entries: int) -> None:
        self.given_back += entries

    def count_in_doubt(self, entries: int) -> None:
        self.in_doubt += entries

    def count_connection(self) -> None:
        self.connections += 1

    def count_failed_connection(self) -> None:
        self.connections_failed += 1

    def count_transaction(self) -> None:
        self.transactions += 1

    def count_local_delivery(self) -> None:
        self.local_deliveries += 1


class Settling:
    """The only way back into the queue. `utc` and `monotonic` return seconds."""

    def __init__(
        self,
        queue: DeliveryQueue,
        maillog: MailLog,
        utc: Callable[[], float],
        monotonic: Callable[[], float],
        audits: Audits = NO_AUDITS,
    ) -> None:
        self._queue, self._maillog, self._audits = queue, maillog, audits
        self._utc, self._monotonic = utc, monotonic
        self.counters = DeliveryCounters()

    def settle(self, job: Job, entries: list[Entry], reply: Reply, host: bytes, known_for_s: float | None = None) -> None:
        """Settle entries of a job that share this reply: 2xx delivered, 4xx deferred, 5xx failed. `known_for_s`: as in
        `mail.outcome.Outcome`."""
        if not entries:
            return
        counters = self.counters
        if reply.code < 300:
            kind = OutcomeKind.DELIVERED
        elif reply.code < 500:
            kind = OutcomeKind.DEFERRED
        else:
            kind = OutcomeKind.FAILED
        counters.count_outcome(kind, len(entries))
        outcome = Outcome(kind, reply, host, known_for_s)
        message = job.message
        (dispositions,) = self._queue.settle([(message, entries, outcome)])
        now = self._monotonic()
        waiting_s = job.begun_at - job.queued_at - job.setup_s
        sending_s = now - job.begun_at
        delay_s = self._queue.age_s(message)
        delays = format_delays(delay_s - (now - job.queued_at), waiting_s, job.setup_s, sending_s)
        if kind is OutcomeKind.DELIVERED:
            counters.count_delivery(message.stored_bytes, len(entries), delay_s, sending_s)
        elif kind is OutcomeKind.DEFERRED:
            counters.count_expired(dispositions.count(Disposition.EXPIRED))
        write = self._maillog.write
        recipients = [entry.recipient for entry in entries]
        for line in format_lines(message.spool_id, recipients, outcome, delay_s, delays, dispositions):
            write(line)
        if self._audits is not NO_AUDITS:
            self._audit(message, entries, outcome, dispositions, delay_s)

    def _audit(
        self,
        message: Message,
        entries: list[Entry],
        outcome: Outcome,
        dispositions: Sequence[Disposition],
        age_s: float,
    ) -> None:
        """Write audit events of entries that leave the queue now; a bounce leaves it with its report."""
        audits = self._audits
        received_at = self._utc() - age_s  # by the present setting of the clock
        for entry, disposition in zip(entries, dispositions, strict=True):
            if disposition is Disposition.SENT:
                log = audits.delivered
                action = Action.DELIVERED if outcome.host == _LOCAL else Action.RELAYED
            elif disposition is Disposition.DEFERRED or message.sender:
                continue
            else:
                log, action = audits.bounced, Action.REPORT_DISCARDED
            if log is not None:
                attempts = entry.attempts + 1
                log.write(audited(action, message, entry, received_at, outcome.reply, outcome.host, disposition, attempts))

    def settle_unrouted(self, job: Job, outcome: Outcome) -> None:
        """Settle a job without a transaction: the outcome is our own."""
        job.begin(self._monotonic())
        self.settle(job, job.entries, outcome.reply, outcome.host)

    def give_back(self, job: Job, delay_s: float) -> None:
        """Give back the rest of a job, which was not tried."""
        entries = job.remaining()
        if entries:
            self.counters.count_given_back(len(entries))
            self._queue.give_back(job.message, entries, delay_s)
