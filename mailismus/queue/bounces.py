"""Bounces on their way to their reports: taken from the provider, kept until their round is over, ended with the report.

*Rules*: a report and the end of its bounces are one commit: after a crash either the bounces or the report exist. Bounces
that are out count apart from deliveries, so that neither starves the other.

*Not here*: the grouping of bounces (`queue.rounds`), the text of reports (`report.task`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from mailismus.mail.ids import SpoolId, spool_name
from mailismus.observe.maillog import MailLog
from mailismus.queue.content import IDraft
from mailismus.queue.interface import Area, IQueue, Message, Settlement, Submission
from mailismus.queue.listeners import Listeners
from mailismus.queue.out_entries import OutEntries
from mailismus.queue.rounds import Rounds

PULL = 1000
"""Bounces taken from the provider at a time."""

MAX_WAITING = 10_000
"""Bounces that may wait for the end of their rounds, unless `max_out` allows fewer."""

_ANY = 1 << 30


class Bounces:
    """Entries of the area BOUNCES that are out: at most `max_out` (0: no limit). `out`: entries that are out for delivery;
    `now`: UTC seconds; `listeners` are told when a round is over, and when there is room."""

    def __init__(
        self,
        provider: IQueue,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        mail_log: MailLog,
        max_out: int,
        *,
        out: OutEntries,
        now: Callable[[], float],
        listeners: Listeners,
    ) -> None:
        self._provider, self._clock, self._monotonic, self._mail_log = provider, clock, monotonic, mail_log
        self._max_out = max_out or _ANY
        self._out, self._now, self._listeners = out, now, listeners
        self._rounds = Rounds(_max_waiting(self._max_out))
        self._timer: IDelayedCall | None = None
        self._timer_at = 0.0
        """Monotonic seconds."""
        self.out_count = 0
        """Entries that are out for a report, wait for the end of their round, or are reserved for a take."""

    def reload(self, max_out: int) -> None:
        """Set another bound, for bounces to come (0: no limit)."""
        self._max_out = max_out or _ANY
        self._rounds.set_max_waiting(_max_waiting(self._max_out))
        if self._rounds.ready_count:
            self._listeners.wake_all(Area.BOUNCES)

    @property
    def has_room(self) -> bool:
        """Whether more may be taken."""
        return self.out_count < self._max_out

    @property
    def has_ready(self) -> bool:
        """Whether bounces are ready for a report."""
        return self._rounds.ready_count > 0

    # events of entries that are out for delivery

    def bounced(self, spool_id: SpoolId, count: int) -> None:
        """Note that `count` entries of a message with several recipients failed; `sure` follows when that is durable."""
        self._rounds.bounced(spool_id, count, self._monotonic())

    def sure(self, spool_id: SpoolId, count: int) -> None:
        """Note that so many failures are durable, or lost."""
        self._rounds.sure(spool_id, count, self._monotonic())
        self._set_timer()

    @property
    def has_open(self) -> bool:
        """Whether a round is open: whether `quiet` matters."""
        return self._rounds.has_open

    def quiet(self, spool_id: SpoolId) -> None:
        """Note that no entry of the message is out for delivery any more."""
        if self._rounds.has_open:
            self._rounds.quiet(spool_id, self._monotonic())
            self._set_timer()

    # out

    def take(self, limit: int) -> Deferred[list[Message]]:
        """Return bounces whose round is over, see `QueueManager.take`."""
        rounds = self._rounds
        rounds.advance(self._monotonic(), self._out.is_out)
        pull = min(PULL, self._max_out - self.out_count)
        if rounds.ready_count >= limit or pull <= 0:
            return succeed(rounds.take(limit))
        self.out_count += pull
        taking = self._provider.take(Area.BOUNCES, pull, self._now(), None)
        return taking.addCallbacks(self._taken, self._not_taken, callbackArgs=(limit, pull), errbackArgs=(pull,))

    def _taken(self, messages: list[Message], limit: int, pull: int) -> list[Message]:
        rounds, now = self._rounds, self._monotonic()
        count = sum(len(message.entries) for message in messages)
        for message in messages:
            if count >= pull and message.recipient_count > 1:
                rounds.linger(message.spool_id, now)  # its other bounces may come with the next take
            rounds.collect(message)
        self.come_back(pull - count)
        self._set_timer()
        return rounds.take(limit)

    def _not_taken(self, failure: Failure, pull: int) -> Failure:
        self.come_back(pull)
        return failure

    # on

    def come_back(self, count: int) -> None:
        """Note that `count` entries are no longer out."""
        self.out_count -= count
        if count:
            self._out.tell_of_room()

    def end(self, message: Message, report: Submission | None = None) -> Deferred[None]:
        """End these bounces, which came from one `take`; with their report, see `QueueManager.report`."""
        submissions, draft = ((), None) if report is None else ((report,), report.draft)
        settlements = [Settlement(queue_id, None) for queue_id in message.queue_ids()]
        ended: Deferred[None] = Deferred()
        done = self._provider.commit(submissions, settlements)
        done.addCallbacks(self._ended, self._not_ended, callbackArgs=(ended, len(settlements)), errbackArgs=(ended, draft))
        return ended

    def _ended(self, gone: Sequence[SpoolId], ended: Deferred[None], count: int) -> None:
        self.come_back(count)
        ended.callback(None)
        for spool_id in gone:
            self._mail_log.write(spool_name(spool_id) + b": removed")

    def _not_ended(self, failure: Failure, ended: Deferred[None], draft: IDraft | None) -> None:
        if draft is not None:
            draft.abandon()
        ended.errback(failure)

    # within

    def _set_timer(self) -> None:
        """Set the timer for the next round that may be over."""
        at = self._rounds.next_at()
        if at is None:
            return
        wait_s = max(0.0, at - self._monotonic())
        if self._timer is None or not self._timer.active():
            self._timer, self._timer_at = self._clock.callLater(wait_s, self._advance), at
        elif at < self._timer_at:
            self._timer_at = at
            self._timer.reset(wait_s)

    def _advance(self) -> None:
        self._rounds.advance(self._monotonic(), self._out.is_out)
        self._set_timer()
        if self._rounds.ready_count:
            self._listeners.wake_all(Area.BOUNCES)


def _max_waiting(max_out: int) -> int:
    """Return how many bounces may wait for the end of their rounds: half of those that may be out, so that reports go on."""
    return min(MAX_WAITING, max_out // 2)
