"""The queue as the tasks see it: one manager, whatever the provider.

The manager settles outcomes (*outcome -> disposition -> settle*). It knows what is out (`queue.out_entries`) and what is not
durable (`queue.not_durable`). `queue.outcome.verdict` decides about a failed attempt; bytes and entries are the provider's.

*Rules*: every outcome is settled in the call that brings it, in one commit. A report (null reverse-path) that can't be
delivered is discarded and logged, never reported (RFC 5321 4.5.5).

*Not here*: the `status=` lines (the deliverer knows host and delays), replies to clients, bounces on their way to their
reports (`queue.bounces`), ages of messages (`queue.clock.ages`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.config.values.settings import RetrySettings
from mailismus.errors import StorageError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId, spool_name
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.observe.maillog import MailLog
from mailismus.queue.acting import Acting
from mailismus.queue.addressed import addressed
from mailismus.queue.bounces import Bounces
from mailismus.queue.clock.ages import Ages
from mailismus.queue.clock.clockwatch import ClockWatch
from mailismus.queue.clock.dating import Dating
from mailismus.queue.commits import commit_deferred
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.flushes import ToldFlush
from mailismus.queue.interface import (
    Area,
    CommitListener,
    EndedEntries,
    Entry,
    Filter,
    Flushed,
    ICountingPlan,
    IQueue,
    M,
    Message,
    Page,
    Settlement,
    Shares,
    Submission,
    Summary,
)
from mailismus.queue.jumps import JumpResponse
from mailismus.queue.listeners import Listeners
from mailismus.queue.not_durable import OutcomeBatch, OutcomeGate
from mailismus.queue.out_entries import OutEntries, split_out
from mailismus.queue.outcome.disposition import Disposition
from mailismus.queue.outcome.verdict import Verdicts
from mailismus.queue.servers import KnownServer
from mailismus.queue.waiting import Explanations, NoExplanations


class QueueManager:
    """Manager of one open provider."""

    log = Logger()

    def __init__(
        self,
        provider: IQueue,
        retry: RetrySettings,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        mail_log: MailLog,
        *,
        max_out: int = 0,
        salt: Callable[[], int] = int,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        """`clock`: UTC seconds; `monotonic`: seconds that never jump; `max_out`: bound of the entries that are out (0: none;
        one delivery and one bounce may always be out); `elapsed`: as `monotonic`, and counts the time that the machine is
        suspended; `salt`: a number that makes the retry times of queues differ."""
        max_deliveries_out, max_bounces_out = split_out(max_out)
        self._provider = provider
        self._clock = clock
        self._mail_log = mail_log
        watch = ClockWatch(clock, monotonic, elapsed or monotonic)
        self._now = watch.now
        self._ages = Ages()
        self._verdicts = Verdicts(retry, watch, self._ages, salt)
        self._dating = Dating(watch, self._ages)
        self._out = OutEntries(clock, max_deliveries_out)
        self._gate = OutcomeGate()
        self._listeners = Listeners(provider)
        self._jumps = JumpResponse(provider, clock, watch, self._ages, self._verdicts, self._out)
        watch.listen(self._jumps.respond)
        self._bounces = Bounces(
            provider, clock, monotonic, mail_log, max_bounces_out, out=self._out, now=watch.now, listeners=self._listeners
        )
        self.acting = Acting(provider, self._bounces, self._listeners, self._dating, mail_log, watch.now)
        """For acts of administrators. Read only."""
        self._awaited, self._arrivals = self.acting.awaited, self.acting.arrivals
        self._has_begun = False
        self._at_flush: list[Callable[[], None]] = []
        self._at_flush_of: list[Callable[[Message, Entry], None]] = []
        self._explain: Callable[[], Explanations] = NoExplanations

    def reload(self, retry: RetrySettings, max_out: int) -> None:
        """Set another retry rule and bound, for outcomes and takings to come."""
        self._verdicts.reload(retry)
        deliveries, bounces = split_out(max_out)
        self._out.reload(deliveries)
        self._bounces.reload(bounces)

    # In

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable` if it could not be committed now."""
        draft = self._provider.draft()
        self._ages.begun(draft.spool_id)
        return draft

    def accept(self, draft: IDraft, envelope: Envelope, listener: CommitListener[M], mark: M) -> None:
        """Commit a whole draft. The listener is told when message and entries are durable: then, and not before, 250. A
        failure is told with `Unavailable`: the client keeps its mail."""
        submission = Submission(draft, envelope, self._arrival_of(draft))
        if self._arrivals.rules:
            self._arrivals.begin_commit(submission, listener, mark)
        else:
            self._provider.begin_commit((submission,), (), (), listener, mark)

    @property
    def max_envelope_bytes(self) -> int:
        """See `IQueue`."""
        return self._provider.max_envelope_bytes

    # Out

    def take(self, area: Area, limit: int, shares: Shares | None = None) -> Deferred[list[Message]]:
        """Take at most `limit` due entries, oldest first, as `IQueue.take`; none while `max_out` entries are out.

        Of BOUNCES, whatever `shares` say: entries whose round is over. Bounces of one message that are reported together
        come together, so the last ones may exceed `limit`; they are given back, reported or discarded as they came.
        """
        if not self._has_begun:
            self._has_begun = True
            self._jumps.begin()
        if area is Area.BOUNCES:
            return self._bounces.take(limit).addCallback(self._dating.date_bounces)
        out = self._out
        reserved = out.reserve(limit)
        if not reserved:
            return succeed([])
        now = self._now()
        taking = self._provider.take(area, reserved, now, shares)
        return taking.addCallbacks(out.on_taken, out.on_not_taken, callbackArgs=(reserved, now), errbackArgs=(reserved,))

    def room_again(self) -> None:
        """Ask about the senders again that were passed over, see `IQueue`."""
        self._provider.room_again()

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when entries of the area may be taken and there is room for them, and when an entry was settled that becomes
        due before the last `next_due`: ask that again. May fire in vain."""
        if area is Area.BOUNCES:
            if self._bounces.has_ready:
                return succeed(None)
            has_room = self._bounces.has_room
        else:
            has_room = self._out.has_room
        if not has_room:
            return self._out.when_room().addCallback(lambda _: self.ready(area))
        return self._listeners.add(area)

    def next_due(self, area: Area) -> float | None:
        """Return when the next waiting entry of the area becomes due, see `IQueue`."""
        return self._provider.next_due(area)

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        """Give entries back untried: no attempt is counted. They may be taken again in `delay_s` seconds."""
        spool_id = message.spool_id
        now = self._clock.seconds()
        if entries and entries[0].area is Area.BOUNCES:
            self._bounces.come_back(len(entries))
        elif self._out.come_back(spool_id, len(entries)):
            self._bounces.quiet(spool_id)
        if self._awaited:
            entries, settlements = self._awaited.given_back(message, entries)
            if settlements:
                commit_deferred(self._provider, (), settlements)
        self._provider.give_back([QueueId(spool_id, entry.number) for entry in entries], now + delay_s)

    def may_try(self, spool_id: SpoolId) -> bool:
        """Return whether what is out of this message may be tried now, see `IQueue`."""
        return self._provider.may_try(spool_id)

    def withheld(self) -> str:
        """Return why nothing is handed out now, see `IQueue`."""
        return self._provider.withheld()

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """Return the content, see `IQueue`."""
        return self._provider.read(spool_id)

    @property
    def out_count(self) -> int:
        """Entries that are out, or reserved for a take."""
        return self._out.count + self._bounces.out_count

    # On

    def when_may_begin(self) -> Deferred[None]:
        """Fires when fewer than `MAX_IN_DOUBT` outcomes are in doubt: at once, or in the turn in which that becomes true."""
        return self._gate.when_open()

    @property
    def in_doubt(self) -> int:
        """Outcomes that are known and not yet durable: after a crash now, this many deliveries would be repeated."""
        return self._gate.count

    def settle(self, results: Sequence[tuple[Message, Sequence[Entry], Outcome]]) -> list[list[Disposition]]:
        """Settle the outcomes of attempts, each for some entries of one `take` of a message: decide about all, and commit
        them at once. Return the dispositions in the order of `results` and their entries, for the `status=` lines."""
        found: list[list[Disposition]] = []
        ended: list[EndedEntries] = []
        count = 0
        settlements: list[Settlement] = []
        batch = OutcomeBatch()
        for message, entries, outcome in results:
            spool_id = message.spool_id
            if outcome.kind is OutcomeKind.DELIVERED:
                if entries:
                    if self._awaited:
                        self._awaited.delivered(message, entries)
                    found.append([Disposition.SENT] * len(entries))
                    if len(entries) == 1:
                        ended.append((spool_id, (entries[0].number,)))
                    else:
                        ended.append((spool_id, [entry.number for entry in entries]))
                    count += len(entries)
                else:
                    found.append([])
            else:
                found.append(self._decide(message, entries, outcome, settlements, batch))
        batch.count = count = count + len(settlements)
        if not count:
            return found
        self._gate.begin(count)
        self._provider.begin_commit((), settlements, ended, self, batch)
        bounces, come_back = self._bounces, self._out.come_back
        for spool_id, bounced in batch.bounced:
            bounces.bounced(spool_id, bounced)
        for message, entries, _ in results:
            if entries and come_back(message.spool_id, len(entries)) and bounces.has_open:
                bounces.quiet(message.spool_id)
        return found

    def report(self, draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        """Commit the draft as the report of these bounces, which came from one `take`: the report counts and the bounces
        end, or neither.

        Fires when that is durable, before the log tells that a message is removed. Fails with `Unavailable`: the draft is
        abandoned, the bounces are still out.
        """
        submission = Submission(draft, envelope, self._arrival_of(draft))
        return self._arrivals.commit(submission, partial(self._bounces.end, message))

    def discard(self, message: Message) -> Deferred[None]:
        """End these bounces, which came from one `take`, without a report. Fires as `report` does."""
        return self._bounces.end(message)

    def _decide(
        self,
        message: Message,
        entries: Sequence[Entry],
        outcome: Outcome,
        settlements: list[Settlement],
        batch: OutcomeBatch,
    ) -> list[Disposition]:
        """Decide about entries whose attempt was deferred or failed. Add their settlements."""
        spool_id = message.spool_id
        taken_at = self._out.taken_at(spool_id)
        dispositions: list[Disposition] = []
        bounced = 0
        for entry in entries:
            disposition, settlement = self._verdicts.of(message, entry, outcome, taken_at)
            if self._awaited:
                settlement = self._awaited.settled(message, entry, settlement)
            dispositions.append(disposition)
            settlements.append(settlement)
            if settlement.area is Area.DEFERRED:
                batch.defer(settlement.due_at)
            elif settlement.area is Area.BOUNCES:
                bounced += 1
            elif settlement.area is None and not message.sender:
                self._mail_log.write(
                    b"%b: to=<%b>, report discarded: %b"
                    % (spool_name(spool_id), addressed(entry), disposition.value.encode())
                )
        if bounced and message.recipient_count > 1:
            batch.bounced.append((spool_id, bounced))
        return dispositions

    # What it is told of its settlements (`CommitListener`)

    def on_durable(self, marks: Sequence[OutcomeBatch], gone: Sequence[Sequence[SpoolId]]) -> None:
        lines = [spool_name(spool_id) + b": removed" for over in gone for spool_id in over]
        if lines:
            self._mail_log.write_lines(lines)
        for batch in marks:
            self._end_batch(batch)
            if batch.due_at is not None:
                self._listeners.wake(Area.DEFERRED, batch.due_at, self._clock.seconds())

    def on_failed(self, marks: Sequence[OutcomeBatch], error: StorageError) -> None:
        for batch in marks:
            self.log.error(
                "{count} outcomes could not be written, and may be tried again: {error}", count=batch.count, error=error
            )
            self._end_batch(batch)

    def _end_batch(self, batch: OutcomeBatch) -> None:
        self._gate.end(batch.count)
        for spool_id, bounced in batch.bounced:
            self._bounces.sure(spool_id, bounced)

    # Reading

    def summary(self) -> Deferred[Summary]:
        """See `IQueue`."""
        return self._provider.summary()

    def counting_plan(self) -> ICountingPlan | None:
        """See `IQueue`."""
        return self._provider.counting_plan()

    def servers(self) -> Deferred[Sequence[KnownServer]] | None:
        """See `IQueue`."""
        return self._provider.servers()

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        """See `IQueue`."""
        dating = self._dating
        return self._provider.search(dating.date_filter(wanted), after, limit).addCallback(dating.date_page)

    def ages_s(self, messages: Sequence[Message]) -> list[float]:
        """Return the seconds since each message arrived, corrected for jumps of the clock in this run."""
        now, ages = self._now(), self._ages
        if not ages.has_jumped:
            return [now - message.received_at for message in messages]
        return [ages.age_s(message.spool_id, message.received_at, now) for message in messages]

    def on_flush(self, act: Callable[[], None], act_on: Callable[[Message, Entry], None]) -> None:
        """Call `act` at each flush of everything, before entries become due by it; at each flush of some entries `act_on`
        for each of them, before it becomes due. Neither may call this manager."""
        self._at_flush.append(act)
        self._at_flush_of.append(act_on)

    def on_jump(self, act: Callable[[], None]) -> None:
        """Call `act` after each jump of the clock or suspension of the machine, before any decision by the new time. `act`
        must not call this manager."""
        self._jumps.on_jump(act)

    def visit_all(self, wanted: Filter | None) -> Deferred[Flushed]:
        """Make matching deferred entries due now (a flush), None: all; see `IQueue`."""
        now = self._clock.seconds()
        if wanted is None:
            for act in self._at_flush:
                act()
            return self._provider.visit_all(Filter(), now)
        flush = ToldFlush(wanted, self._at_flush_of)
        return self._provider.visit_all(attrs.evolve(wanted, matches=flush.matches), now).addBoth(flush.end)

    def on_explain(self, make: Callable[[], Explanations]) -> None:
        """Let `make` give the explanations of entries to each caller of `explanations`."""
        self._explain = make

    def explanations(self) -> Explanations:
        """Explanations of entries for one caller: why they are still here."""
        return self._explain()

    # Within

    def _arrival_of(self, draft: IDraft) -> float:
        """Note that the draft's message arrives now. Return the time."""
        now = self._now()
        self._ages.arrived(draft.spool_id)
        return now
