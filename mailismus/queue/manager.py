"""The queue as the tasks see it: one manager, whatever the provider.

Here outcomes are settled (*outcome -> disposition -> settle*), and here is counted what is handed out and what is not yet
durable. What becomes of a failed attempt is decided in `queue.verdict`; bytes and entries live in the provider.

*Rules*: every outcome is settled in the call that brings it, in one commit. Deliveries may not run on while the disk
stalls: `may_begin` says no while `MAX_IN_DOUBT` outcomes are not durable, so that a crash doubles no more than those.
A report (null reverse-path) that can't be delivered is discarded and logged, never reported (RFC 5321 4.5.5).

*Not here*: the `status=` lines (who delivered knows host and delays), replies to clients, bounces on their way to their
reports (`queue.bounces`), how old messages are (`queue.ages`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import RetrySettings
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.observe.maillog import MailLog
from mailismus.observe.text import plain
from mailismus.queue.ages import Ages, Jump
from mailismus.queue.bounces import Bounces
from mailismus.queue.clockwatch import CLOCK_JUMP_S, ClockWatch
from mailismus.queue.dating import Dating
from mailismus.queue.disposition import Disposition
from mailismus.queue.interface import (
    Area,
    Entry,
    Filter,
    Flushed,
    IContent,
    ICountingPlan,
    IDraft,
    IQueue,
    Message,
    Page,
    Settlement,
    Submission,
    Summary,
)
from mailismus.queue.listeners import Listeners
from mailismus.queue.verdict import Verdicts

MAX_IN_DOUBT = 200
"""Outcomes that may be known and not durable at a time."""

PER_MESSAGE = 200
"""Entries of one message that may be out at once."""

LOOK_AGAIN_S = (2.0, 120.0)
"""After the clock was set back: seconds until the queue is asked again for what waits too long. A barrier that hangs takes
its time."""

REPORT_SHARE = 10
"""One part in so many of `max_out` is kept for bounces: neither deliveries nor reports starve the others."""


def split_out(max_out: int) -> tuple[int, int]:
    """Split the bound of entries that are out: for deliveries, for bounces. Each is at least 1; 0 is no limit for both."""
    if not max_out:
        return 0, 0
    share = max(1, max_out // REPORT_SHARE)
    return max(1, max_out - share), share


@attrs.define
class _Out:
    """Of a message: how many of its entries are out, and since when; None: since before the clock jumped."""

    entries: int
    taken_at: float | None


class QueueManager:
    """Over one provider, which is open. `clock` gives UTC seconds, `monotonic` seconds that never jump; `max_out` bounds
    the entries that are handed out in all (0: no limit; one delivery and one bounce may always be out); `salt` makes the
    retry times of servers differ; `elapsed`: as `monotonic`, and counts the time that the machine is suspended."""

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
        per_message: int = PER_MESSAGE,
        salt: int = 0,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._watch = ClockWatch(clock, monotonic, elapsed or monotonic, self._jumped)
        self._now = self._watch.now
        self._ages = Ages()
        self._verdicts = Verdicts(retry, self._watch, self._ages, salt)
        self._dating = Dating(self._watch, self._ages)
        self._has_begun = False
        self._mail_log = mail_log
        self._max_out, max_bounces_out = split_out(max_out)
        self._per_message = per_message
        self._out: dict[SpoolId, _Out] = {}
        self._out_count = 0
        """Entries that are out for delivery, or about to be."""
        self._bounces = Bounces(
            provider,
            clock,
            monotonic,
            mail_log,
            max_bounces_out,
            is_out=self._out.__contains__,
            now=self._now,
            on_ready=lambda: self._listeners.wake_all(Area.BOUNCES),
            on_room=self._tell_of_room,
        )
        self._in_doubt = 0
        self._waiting_to_begin: list[Deferred[None]] = []
        self._waiting_for_room: list[Deferred[None]] = []
        self._listeners = Listeners(provider)
        self._at_flush: list[Callable[[], None]] = []
        self._at_jump: list[Callable[[], None]] = []
        self._of_stuck: list[Callable[[], Mapping[QueueId, bytes]]] = []

    def reload(self, retry: RetrySettings, max_out: int) -> None:
        """Another retry rule and bound, for outcomes and takings to come."""
        self._verdicts.reload(retry)
        self._max_out, max_bounces_out = split_out(max_out)
        self._bounces.reload(max_bounces_out)
        self._tell_of_room()

    # In

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable` when it could not be committed now."""
        draft = self._provider.draft()
        self._ages.begun(draft.spool_id)
        return draft

    def accept(self, draft: IDraft, envelope: Envelope) -> Deferred[Sequence[SpoolId]]:
        """The draft is whole. Fires when message and entries are durable: then, and not before, 250. Fails with
        `Unavailable`: the client keeps its mail."""
        return self._provider.commit((Submission(draft, envelope, self._arrival_of(draft)),), ())

    @property
    def max_envelope_bytes(self) -> int:
        """See `IQueue`."""
        return self._provider.max_envelope_bytes

    # Out

    def take(self, area: Area, limit: int) -> Deferred[list[Message]]:
        """At most `limit` entries that are due, oldest first, as `IQueue.take`; none when `max_out` are out.

        Of BOUNCES those whose round is over. What of a message is reported together comes together, so the last may go
        beyond `limit`; it is given back, reported or discarded as it came.
        """
        if not self._has_begun:
            self._begin()
        if area is Area.BOUNCES:
            return self._bounces.take(limit).addCallback(self._dating.date_bounces)
        if self._max_out:
            limit = min(limit, self._max_out - self._out_count)
        if limit <= 0:
            return succeed([])
        now = self._now()
        self._out_count += limit
        # Bounces that wait for the end of their round are out too, and must not keep it from ending.
        taking = self._provider.take(area, limit, now, self._per_message + self._bounces.waiting_of_one)
        return taking.addCallbacks(self._taken, self._not_taken, callbackArgs=(limit, now), errbackArgs=(limit,))

    def _taken(self, messages: list[Message], reserved: int, now: float) -> list[Message]:
        count = 0
        out = self._out
        for message in messages:
            number = len(message.entries)
            count += number
            known = out.get(message.spool_id)
            if known is None:
                out[message.spool_id] = _Out(number, now)
            else:
                known.entries += number
        self._release_room(reserved - count)
        return messages

    def _not_taken(self, failure: Failure, reserved: int) -> Failure:
        self._release_room(reserved)
        return failure

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when something of the area may be taken and there is room for it, and when an entry was settled that
        becomes due before `next_due` said: ask that again. May fire in vain."""
        if area is Area.BOUNCES:
            if self._bounces.has_ready:
                return succeed(None)
            has_room = self._bounces.has_room
        else:
            has_room = not self._max_out or self._out_count < self._max_out
        if not has_room:
            room: Deferred[None] = Deferred()
            self._waiting_for_room.append(room)
            return room.addCallback(lambda _: self.ready(area))
        return self._listeners.add(area)

    def next_due(self, area: Area) -> float | None:
        """When the next waiting entry of the area becomes due, see `IQueue`."""
        return self._provider.next_due(area)

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        """Untried: no attempt is counted; they may be taken again in `delay_s` seconds."""
        spool_id = message.spool_id
        now = self._clock.seconds()
        if entries and entries[0].area is Area.BOUNCES:
            self._bounces.come_back(len(entries))
        else:
            self._come_back(spool_id, len(entries))
        self._provider.give_back([QueueId(spool_id, entry.number) for entry in entries], now + delay_s)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """The content, see `IQueue`."""
        return self._provider.read(spool_id)

    @property
    def out_count(self) -> int:
        """Entries that are handed out, or about to be."""
        return self._out_count + self._bounces.out_count

    # On

    @property
    def may_begin(self) -> bool:
        """Whether another delivery may begin: fewer than `MAX_IN_DOUBT` outcomes are not durable."""
        return self._in_doubt < MAX_IN_DOUBT

    def when_may_begin(self) -> Deferred[None]:
        """Fires when `may_begin` is true: at once, or in the turn it becomes so."""
        if self._in_doubt < MAX_IN_DOUBT:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting_to_begin.append(waiting)
        return waiting

    @property
    def in_doubt(self) -> int:
        """Outcomes that are known and not yet durable: after a crash now, so many would be tried again."""
        return self._in_doubt

    def settle(self, message: Message, results: Sequence[tuple[Entry, Outcome]]) -> Sequence[Disposition]:
        """What attempts came to, for entries of one `take` of this message. Decides what becomes of each and commits it at
        once; gives the dispositions in the order of `results`, for the `status=` lines."""
        spool_id = message.spool_id
        dispositions: list[Disposition] = []
        settlements: list[Settlement] = []
        due_at: float | None = None
        bounced = 0
        for entry, outcome in results:
            if outcome.kind is OutcomeKind.DELIVERED:
                dispositions.append(Disposition.SENT)
                settlements.append(Settlement(QueueId(spool_id, entry.number), None))
            else:
                disposition, settlement = self._decide(message, entry, outcome)
                dispositions.append(disposition)
                settlements.append(settlement)
                if settlement.area is Area.BOUNCES:
                    bounced += 1
                elif settlement.area is Area.DEFERRED and (due_at is None or settlement.due_at < due_at):
                    due_at = settlement.due_at
        count = len(settlements)
        if count:
            self._in_doubt += count
            done = self._provider.commit((), settlements)
            if bounced and message.recipient_count > 1:
                self._bounces.bounced(spool_id, bounced, done)
            done.addCallbacks(self._settled, self._not_settled, callbackArgs=(count, due_at), errbackArgs=(spool_id, count))
            self._come_back(spool_id, count)
        return dispositions

    def report(self, draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        """The draft is the report of these bounces, as `take` gave them: both count from one commit on, or neither.

        Fires when that is durable, before the log says that a message is removed. Fails with `Unavailable`: the draft is
        abandoned, the bounces are still out.
        """
        return self._bounces.end(message, Submission(draft, envelope, self._arrival_of(draft)))

    def discard(self, message: Message) -> Deferred[None]:
        """These bounces, as `take` gave them, are over without a report. Fires as `report` does."""
        return self._bounces.end(message)

    def _decide(self, message: Message, entry: Entry, outcome: Outcome) -> tuple[Disposition, Settlement]:
        """Deferred or failed: what becomes of the entry."""
        spool_id = message.spool_id
        known = self._out.get(spool_id)
        taken_at = known.taken_at if known is not None else None
        disposition, settlement = self._verdicts.of(message, entry, outcome, taken_at)
        if settlement.area is None:
            self._mail_log.write(
                b"%016X: to=<%b>, report discarded: %b" % (spool_id, plain(entry.recipient), disposition.value.encode())
            )
        return disposition, settlement

    def _settled(self, gone: Sequence[SpoolId], count: int, due_at: float | None) -> None:
        for spool_id in gone:
            self._mail_log.write(b"%016X: removed" % spool_id)
        self._sure(count)
        if due_at is not None:
            self._listeners.wake(Area.DEFERRED, due_at, self._clock.seconds())

    def _not_settled(self, failure: Failure, spool_id: SpoolId, count: int) -> None:
        self.log.failure(
            "a settlement could not be written: {spool_id} may be tried again", failure, spool_id=f"{spool_id:016X}"
        )
        self._sure(count)

    def _sure(self, count: int) -> None:
        self._in_doubt -= count
        if self._waiting_to_begin and self._in_doubt < MAX_IN_DOUBT:
            waiting, self._waiting_to_begin = self._waiting_to_begin, []
            for deferred in waiting:
                deferred.callback(None)

    # Looking

    def summary(self) -> Deferred[Summary]:
        """See `IQueue`."""
        return self._provider.summary()

    def counting_plan(self) -> ICountingPlan | None:
        """See `IQueue`."""
        return self._provider.counting_plan()

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        """See `IQueue`."""
        dating = self._dating
        return self._provider.search(dating.date_filter(wanted), after, limit).addCallback(dating.date_page)

    def age_s(self, message: Message) -> float:
        """Seconds since the message arrived, whatever the clock did since in this run."""
        now = self._now()
        if not self._ages.has_jumped:
            return now - message.received_at
        return self._ages.age_s(message.spool_id, message.received_at, now)

    def on_flush(self, act: Callable[[], None]) -> None:
        """`act` is called whenever somebody asks for a flush, before entries become due by it."""
        self._at_flush.append(act)

    def on_jump(self, act: Callable[[], None]) -> None:
        """`act` is called whenever the clock has jumped, or the machine was suspended, before anything is decided behind
        it; it must not call this manager."""
        self._at_jump.append(act)

    def visit_all(self, wanted: Filter) -> Deferred[Flushed]:
        """Deferred entries that match are due now (a flush); see `IQueue`."""
        for act in self._at_flush:
            act()
        return self._provider.visit_all(wanted, self._clock.seconds())

    def on_stuck(self, ask: Callable[[], Mapping[QueueId, bytes]]) -> None:
        """`ask` tells which entries are out and do not move, and what each waits for."""
        self._of_stuck.append(ask)

    def stuck(self) -> Mapping[QueueId, bytes]:
        """Entries that are out and do not move, with what each waits for, in words for people."""
        return {queue_id: text for ask in self._of_stuck for queue_id, text in ask().items()}

    # Within

    def _arrival_of(self, draft: IDraft) -> float:
        """Its message arrives now."""
        now = self._now()
        self._ages.arrived(draft.spool_id)
        return now

    def _begin(self) -> None:
        """Before the first taking: the clock may have been set since the last run."""
        self._has_begun = True
        now = self._now()
        self._provider.hasten(self._verdicts.latest_at_start(CLOCK_JUMP_S, now), now)

    def _jumped(self, jump: Jump, now: float) -> None:
        """The clock did: when what is out was taken can't be told any more, and what waits for a time of a clock that was
        set back would wait too long."""
        for known in self._out.values():
            known.taken_at = None
        self._ages.jumped(jump)
        if jump.jump_s < 0:
            self._provider.hasten(self._verdicts.latest_after(jump, now), now)
            for delay_s in LOOK_AGAIN_S:
                self._clock.callLater(delay_s, self._look_again)
        for act in self._at_jump:
            act()

    def _look_again(self) -> None:
        """What was on its way to the disk when the clock was set back has got there."""
        now = self._now()
        self._provider.hasten(self._verdicts.latest_after(Jump(0.0, 0.0), now), now)

    def _come_back(self, spool_id: SpoolId, count: int) -> None:
        """So many entries of the message are no longer out."""
        known = self._out.get(spool_id)
        if known is None:
            return
        if known.entries <= count:
            count = known.entries
            del self._out[spool_id]
            self._bounces.quiet(spool_id)
        else:
            known.entries -= count
        self._release_room(count)

    def _release_room(self, count: int) -> None:
        self._out_count -= count
        if count:
            self._tell_of_room()

    def _tell_of_room(self) -> None:
        waiting, self._waiting_for_room = self._waiting_for_room, []
        for deferred in waiting:  # in a turn of its own: who settles does not expect to be asked to take
            self._clock.callLater(0, deferred.callback, None)
