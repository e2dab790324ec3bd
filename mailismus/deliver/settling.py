"""Settling: gives the outcomes of a turn to the queue in one call, and writes the queue's dispositions to the mail log.

*Rules*
- An outcome is noted when it is known and settled in the same turn of the reactor, or at once when `MAX_NOTED` entries are
  noted. Their entries stay out until then.
- Noted outcomes count as outcomes in doubt: `may_begin` keeps the bound of `queue.not_durable` for both together.
- The owner calls `flush` when no turn may follow: at a stop nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.jobs.job import NOWHERE, Job
from mailismus.deliver.knowledge.habits import HabitBook
from mailismus.deliver.knowledge.recent import FailureNote, RecentOutcomes
from mailismus.deliver.log_line import format_delays, format_lines
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.mail.outcome import Outcome, OutcomeKind, RetryClass
from mailismus.mail.reply import Reply
from mailismus.observe.audit import Action
from mailismus.observe.audit_log import NO_AUDITS, Audits
from mailismus.observe.maillog import MailLog
from mailismus.queue.addressed import addressed
from mailismus.queue.audited import audited
from mailismus.queue.interface import Entry
from mailismus.queue.not_durable import MAX_IN_DOUBT
from mailismus.queue.outcome.disposition import Disposition

MAX_NOTED = 50
"""Entries whose outcomes wait for the end of the turn; as many are settled at once."""
_LOCAL = b"local"
"""The host of an outcome that came from a maildir (`deliver.local.deliveries`)."""

# Read for each outcome: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_DELIVERED, _DEFERRED, _FAILED = OutcomeKind.DELIVERED, OutcomeKind.DEFERRED, OutcomeKind.FAILED
_EXPIRED = Disposition.EXPIRED


class Settling:
    """The only way back into the queue. `clock` tells UTC, `monotonic` never jumps."""

    def __init__(
        self,
        queue: DeliveryQueue,
        maillog: MailLog,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        audits: Audits = NO_AUDITS,
    ) -> None:
        self._queue, self._maillog, self._audits = queue, maillog, audits
        self._clock, self._monotonic = clock, monotonic
        self._noted: list[tuple[Job, list[Entry], Outcome]] = []
        """Outcomes that are known and not yet given to the queue, in the order in which they came."""
        self._count = 0
        """Entries of `_noted`."""
        self._is_flush_scheduled = False
        self.counters = DeliveryCounters()
        self.recent = RecentOutcomes()
        self.habits = HabitBook(self.recent.of_hop)

    @property
    def may_begin(self) -> bool:
        """Whether another delivery may begin: fewer than `MAX_IN_DOUBT` outcomes are known and not durable."""
        return self._count + self._queue.in_doubt < MAX_IN_DOUBT

    @property
    def in_doubt(self) -> int:
        """Outcomes that are known and not durable."""
        return self._count + self._queue.in_doubt

    def when_may_begin(self) -> Deferred[None]:
        """Settle noted outcomes. Fires when `may_begin` is true."""
        self.flush()
        return self._queue.when_may_begin()

    def settle(
        self,
        job: Job,
        entries: list[Entry],
        reply: Reply,
        host: bytes,
        known_for_s: float | None = None,
        retry: RetryClass = RetryClass.USUAL,
    ) -> None:
        """Settle, in this turn, entries of a job that share this reply: 2xx delivered, 4xx deferred, 5xx failed.
        `known_for_s`, `retry`: as in `mail.outcome.Outcome`."""
        if not entries:
            return
        code = reply.code
        kind = _DELIVERED if code < 300 else _DEFERRED if code < 500 else _FAILED
        tls = b"" if kind is _DELIVERED else job.fields.tls
        self._noted.append((job, entries, Outcome(kind, reply, host, known_for_s, retry, tls)))
        self._count += len(entries)
        if self._count >= MAX_NOTED:
            self.flush()
        elif not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._clock.callLater(0, self._end_turn)

    def settle_unrouted(self, job: Job, outcome: Outcome) -> None:
        """Settle a job without a transaction: the outcome is our own."""
        job.begin(self._monotonic())
        self.settle(job, job.entries, outcome.reply, outcome.host)

    def _end_turn(self) -> None:
        self._is_flush_scheduled = False
        self.flush()

    def flush(self) -> None:
        """Settle what is noted: one call of the queue, one write to the mail log."""
        noted = self._noted
        if not noted:
            return
        self._noted, self._count = [], 0
        queue, counters, recent = self._queue, self.counters, self.recent
        found = queue.settle([(job.message, entries, outcome) for job, entries, outcome in noted])
        now = self._monotonic()
        delivered = deferred = failed = expired = content_bytes = 0
        note_queued, note_sending = counters.queued_s.note, counters.sending_s.note
        ages_s = queue.ages_s([job.message for job, _, _ in noted])
        lines: list[bytes] = []
        for (job, entries, outcome), dispositions, delay_s in zip(noted, found, ages_s, strict=True):
            message, queued_at, begun_at, setup_s = job.message, job.queued_at, job.begun_at, job.setup_s
            kind, count, hop = outcome.kind, len(entries), recent.of_hop[job.next_hop]
            sending_s = now - begun_at
            if kind is _DELIVERED:
                delivered += count
                content_bytes += message.size_bytes + message.stuffed_dots
                note_queued(delay_s, count)
                note_sending(sending_s)
                hop.add_delivered(count)
                if job.next_hop is not NOWHERE:
                    hop.habits.note_taken(entries, message, sending_s, now)
            else:
                if kind is _DEFERRED:
                    deferred += count
                    expired += dispositions.count(_EXPIRED)
                else:
                    failed += count
                told = dispositions[0], job.next_hop, entries[0].final_recipient, count, outcome.host, bytes(outcome.reply)
                recent.note_failed(FailureNote(now, *told))
                if job.next_hop is not NOWHERE:
                    hop.habits.note_failed(entries, message, outcome.reply, outcome.host, now)
            delays = format_delays(delay_s - (now - queued_at), begun_at - queued_at - setup_s, setup_s, sending_s)
            delays += job.fields.text
            if count == 1 and entries[0].words is None:
                recipients = [entries[0].recipient]
            else:
                recipients = [entry.recipient if entry.words is None else addressed(entry) for entry in entries]
            lines += format_lines(message.spool_id, recipients, outcome, delay_s, delays, dispositions)
        counters.count_outcomes(delivered, deferred, failed, expired, content_bytes)
        self._maillog.write_lines(lines)
        if self._audits.logs:
            for (job, entries, outcome), dispositions, age_s in zip(noted, found, ages_s, strict=True):
                self._audit(job, entries, outcome, dispositions, age_s)

    def _audit(
        self,
        job: Job,
        entries: list[Entry],
        outcome: Outcome,
        dispositions: Sequence[Disposition],
        age_s: float,
    ) -> None:
        """Write audit events of entries that leave the queue now; a bounce leaves it with its report."""
        audits, message = self._audits, job.message
        is_local = outcome.host == _LOCAL or job.next_hop.profile.mailboxes is not None
        received_at = self._clock.seconds() - age_s  # by the present setting of the clock
        for entry, disposition in zip(entries, dispositions, strict=True):
            if disposition is Disposition.SENT:
                log = audits.delivered
                action = Action.DELIVERED if is_local else Action.RELAYED
            elif disposition is Disposition.DEFERRED or message.sender:
                continue
            else:
                log, action = audits.bounced, Action.REPORT_DISCARDED
            if log is not None:
                attempts = entry.attempts + 1
                log.write(audited(action, message, entry, received_at, outcome.reply, outcome.host, disposition, attempts))

    def give_back(self, job: Job, delay_s: float) -> None:
        """Give back the rest of a job, which was not tried."""
        entries = job.remaining()
        if entries:
            self.counters.count_given_back(len(entries))
            self._queue.give_back(job.message, entries, delay_s)
