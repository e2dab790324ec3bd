"""Settling: outcomes go to the queue the moment they are known, and into the mail log as the queue disposed of them.

Counters are plain numbers; whoever shows them reads them when asked.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.deliver.job import Job
from mailismus.deliver.log_line import format_delays, format_lines
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.observe.maillog import MailLog
from mailismus.queue.interface import Entry


class Counters:
    """What delivering has done since its start."""

    def __init__(self) -> None:
        self.taken = 0
        """Entries taken from the queue."""
        self.delivered = self.deferred = self.failed = 0
        """Entries by outcome."""
        self.given_back = 0
        """Entries given back untried."""
        self.in_doubt = 0
        """Entries that may have been sent (deferred)."""
        self.connections = self.connections_failed = 0
        self.transactions = 0
        self.local_deliveries = 0
        self.lookups = 0


class Settling:
    """The one way back into the queue. `utc` and `monotonic` give seconds."""

    def __init__(
        self, queue: DeliveryQueue, maillog: MailLog, utc: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self._queue, self._maillog = queue, maillog
        self._utc, self._monotonic = utc, monotonic
        self.counters = Counters()

    def settle(self, job: Job, entries: list[Entry], reply: Reply, host: bytes) -> None:
        """These entries of a job share this reply: 2xx delivered, 4xx deferred, 5xx failed."""
        if not entries:
            return
        counters = self.counters
        if reply.code < 300:
            kind = OutcomeKind.DELIVERED
            counters.delivered += len(entries)
        elif reply.code < 500:
            kind = OutcomeKind.DEFERRED
            counters.deferred += len(entries)
        else:
            kind = OutcomeKind.FAILED
            counters.failed += len(entries)
        outcome = Outcome(kind, reply, host)
        message = job.message
        dispositions = self._queue.settle(message, [(entry, outcome) for entry in entries])
        waiting_s = job.begun_at - job.queued_at - job.setup_s
        delays = format_delays(job.taken_at - message.received_at, waiting_s, job.setup_s, self._monotonic() - job.begun_at)
        delay_s = self._utc() - message.received_at
        write = self._maillog.write
        recipients = [entry.recipient for entry in entries]
        for line in format_lines(message.spool_id, recipients, outcome, delay_s, delays, dispositions):
            write(line)

    def settle_unrouted(self, job: Job, outcome: Outcome) -> None:
        """No transaction was tried: the outcome comes from ourselves."""
        job.begun_at = self._monotonic()
        self.settle(job, job.entries, outcome.reply, outcome.host)

    def give_back(self, job: Job, delay_s: float) -> None:
        """What is left of a job was not tried."""
        entries = job.remaining()
        if entries:
            self.counters.given_back += len(entries)
            self._queue.give_back(job.message, entries, delay_s)
