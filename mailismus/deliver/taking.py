"""Taking: entries from the queue into the delivery task, as room allows.

    queue ready, or a poll -> take -> held entries -> distribution

*Rules*
- At most `queuecache` entries are held. Each settled entry makes room, which is filled at once: no batch waits for its
  slowest entry.
- Each area has a take of its own: new mail does not wait while the queue reads what has become due from disk, and such a
  take leaves some room for it. Where both areas have entries, they are taken in turn.
- No sender and no next hop holds more than its share of the room (`room`). The queue passes over a sender that has it; what
  goes beyond the share of a next hop is given back when it is routed.
- New mail is taken at once, when the queue reports it. The intervals only limit how long an entry can be overlooked:
  `interval_low` after work, `interval_high` without, `interval_error` after a failure of the queue.
- While the queue forbids it (too many outcomes are not durable), nothing is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import DeliverSettings
from mailismus.deliver.distribution import JobDistribution
from mailismus.deliver.jobs.held import HeldEntries, SenderShares
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.settling import Settling
from mailismus.deliver.why.survey import Taking
from mailismus.errors import StorageError
from mailismus.queue.interface import Area, Message

BATCH = 500
"""Most entries in one take: a turn of the reactor must be short."""
SURPLUS_PAUSE_S = 0.02
"""Seconds until the next take after one that brought more for a next hop than its share: it may be all that waits."""
SURPLUS_PER_S = 5000
"""After a small one the pause is shorter: while room is short, other mail that lies behind the surplus is found at the pace
of so many entries a second."""
SHORT_S = 5.0
"""Room counts as short for so long after a sender or next hop had more mail than its share."""
_AREAS = (Area.INCOMING, Area.DEFERRED)


@attrs.define
class _AreaState:
    """How far taking from one area is."""

    is_open: bool = True
    """It may have entries to take."""
    empty_takes: int = 0
    """Takes without any entry, since the last one with some or the last poll."""
    is_under_way: bool = False
    """A take of it has not ended."""
    is_listening: bool = False
    """The queue will report new entries."""


@attrs.frozen
class _Take:
    """A take that was begun. `limit`: most entries; `shares`: of senders, None: nobody can get too much."""

    area: Area
    limit: int
    shares: SenderShares | None


def _nothing() -> None:
    """Nobody listens."""


class QueueTaking:
    """Takes entries while it runs. `on_poll`: called with each poll."""

    log = Logger()

    def __init__(
        self,
        settings: DeliverSettings,
        queue: DeliveryQueue,
        held: HeldEntries,
        settling: Settling,
        distribution: JobDistribution,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        on_poll: Callable[[], None],
    ) -> None:
        self._queue, self._held = queue, held
        self._settling, self._distribution = settling, distribution
        self._clock, self._monotonic = clock, monotonic
        self._on_work: Callable[[], None] = _nothing
        self._on_poll = on_poll
        self._areas = {area: _AreaState() for area in _AREAS}
        self._turn = 0
        self._is_running = self._is_pump_scheduled = self._waits_to_begin = self._has_begun = False
        self._poll: IDelayedCall | None = None
        self._poll_at = 0.0
        """Monotonic seconds; the timer's own time may be that of another clock."""
        self._not_before = 0.0
        self._error = ""
        """Why the queue could not be read; empty: it could."""
        self._short_at = -math.inf
        """When a sender or next hop had more mail than its share last."""
        self.use(settings)

    def use(self, settings: DeliverSettings) -> None:
        """Use other intervals and another `queuecache` from now on."""
        self._settings = settings
        self._held.set_limit(settings.queuecache or 1 << 30)
        part = self._held.kept // 4
        self._enough_room = max(1, part)
        self._left_by = {Area.INCOMING: 0, Area.DEFERRED: part}
        """Room that takes of an area leave for others."""

    def start(self, on_work: Callable[[], None]) -> None:
        """Begin to take, or go on with other settings. `on_work`: called when entries came, or the queue could not be
        read."""
        self._is_running, self._on_work = True, on_work
        self.schedule()

    def stop(self) -> None:
        """Take no more; what a take under way still brings is given back."""
        self._is_running = False
        if self._poll is not None and self._poll.active():
            self._poll.cancel()

    def state(self, machine_until: float) -> Taking:
        """How entries are taken now. `machine_until`: when connections are made again (monotonic seconds)."""
        settling, held = self._settling, self._held
        return Taking(
            is_begun=self._is_running and self._has_begun,
            is_full=(self._is_any_open and held.room() < self._enough_room) or self._monotonic() - self._short_at < SHORT_S,
            most=held.limit,
            unreadable_until=self._not_before if self._error else 0.0,
            error=self._error,
            in_doubt=0 if settling.may_begin else settling.in_doubt,
            machine_until=machine_until,
            withheld=self._queue.withheld(),
        )

    @property
    def _is_any_open(self) -> bool:
        return any(state.is_open for state in self._areas.values())

    @property
    def has_failed(self) -> bool:
        """Whether the queue could not be read at the last try."""
        return bool(self._error)

    def schedule(self) -> None:
        """Take entries in a turn of its own: there may be new ones, or room again."""
        if self._is_running and not self._is_pump_scheduled:
            self._is_pump_scheduled = True
            self._clock.callLater(0, self._pump)

    def _pump(self) -> None:
        self._is_pump_scheduled, self._has_begun = False, True
        if not self._is_running:
            return
        wait_s = self._not_before - self._monotonic()
        if wait_s > 0:
            self._poll_in(wait_s)
            return
        if not self._settling.may_begin:
            if not self._waits_to_begin:
                self._waits_to_begin = True
                self._settling.when_may_begin().addCallback(self._on_may_begin)
            return
        room = self._held.room()
        area, missing = self._next_area(room)
        if area is None:
            if missing:
                self._held.wait_for(missing, self.schedule)
            self._poll_in(self._interval_s(is_idle=not missing))
            return
        self._begin_take(area, min(room - self._left_by[area], BATCH))
        if self._areas[area].is_under_way:  # it reads: the other area does not wait for it
            self.schedule()

    def _on_may_begin(self, _: None) -> None:
        self._waits_to_begin = False
        self.schedule()

    def _next_area(self, room: int) -> tuple[Area | None, int]:
        """The area to take from next, while there is `room`. None: no area, and the least room that one of them waits for; 0
        if there is none."""
        missing = 0
        for step in (0, 1):
            area = _AREAS[(self._turn + step) % 2]
            state = self._areas[area]
            if state.is_open and not state.is_under_way:
                least = self._enough_room + self._left_by[area]
                if room >= least:
                    self._turn = (self._turn + step + 1) % 2
                    return area, 0
                missing = min(missing or least, least)
        return None, missing

    def _begin_take(self, area: Area, limit: int) -> None:
        take = _Take(area, limit, self._held.begin_take(limit))
        self._areas[area].is_under_way = True
        taking = self._queue.take(area, limit, take.shares)
        taking.addCallbacks(self._taken, self._not_taken, (take,), errbackArgs=(take,)).addErrback(self._on_bug, take)

    def _end_take(self, take: _Take, messages: list[Message]) -> int:
        self._areas[take.area].is_under_way = False
        return self._held.end_take(take.limit, take.shares, messages)

    def _taken(self, messages: list[Message], take: _Take) -> None:
        if not self._is_running:
            self._end_take(take, [])
            for message in messages:
                self._queue.give_back(message, message.entries, 0.0)
            return
        self._error = ""
        count, state = self._end_take(take, messages), self._areas[take.area]
        is_passed_over = take.shares is not None and take.shares.is_passed_over
        if count:
            self._on_work()
            state.empty_takes = 0
            self._settling.counters.count_taken(count)
            if self._distribution.distribute(messages, is_tight=take.shares is not None):
                self._short_at = self._monotonic()
                self._not_before = self._short_at + min(SURPLUS_PAUSE_S, count / SURPLUS_PER_S)
        elif not is_passed_over:
            state.empty_takes += 1
        if is_passed_over:
            self._short_at = self._monotonic()
        if count < take.limit:  # the area is empty: the queue reports new entries
            state.is_open = False
            if state.empty_takes > 2:
                self._clock.callLater(self._settings.interval_low_s, self._listen, take.area)
            else:
                self._listen(take.area)
        if self._is_any_open:
            self.schedule()
        else:
            self._poll_in(self._interval_s(is_idle=True))

    def _not_taken(self, failure: Failure, take: _Take) -> None:
        self._end_take(take, [])
        failure.trap(StorageError)  # type: ignore[no-untyped-call]  # Twisted's
        self._error = str(failure.value)
        self.log.error("The queue can't be read: {error}", error=self._error)
        self._on_work()
        self._try_again_later()

    def _on_bug(self, failure: Failure, take: _Take) -> None:
        if self._areas[take.area].is_under_way:
            self._end_take(take, [])
        self.log.failure("Taking from the queue failed unexpectedly", failure)
        self._try_again_later()

    def _try_again_later(self) -> None:
        self._not_before = self._monotonic() + self._settings.interval_error_s
        self.schedule()

    # ------------------------------------------------------------------ what the queue reports

    def _listen(self, area: Area) -> None:
        state = self._areas[area]
        if self._is_running and not state.is_listening:
            state.is_listening = True
            self._queue.ready(area).addCallbacks(self._on_ready, self._not_ready, callbackArgs=(area,), errbackArgs=(area,))

    def _not_ready(self, failure: object, area: Area) -> None:
        """Stop listening: the queue is closed or failed; the poll asks again."""
        self._areas[area].is_listening = False

    def _on_ready(self, _: None, area: Area) -> None:
        state = self._areas[area]
        state.is_listening, state.is_open = False, True
        self.schedule()

    # ------------------------------------------------------------------ polling as a safety net

    def _interval_s(self, is_idle: bool) -> float:
        """Most seconds until the next poll."""
        settings = self._settings
        wait_s = settings.interval_high_s if is_idle else settings.interval_low_s
        now = self._clock.seconds()
        for area in _AREAS:
            due_at = self._queue.next_due(area)
            if due_at is not None:
                wait_s = min(wait_s, max(0.02, due_at - now) if due_at > now else settings.interval_low_s)
        return wait_s

    def _poll_in(self, wait_s: float) -> None:
        """Poll in this many seconds at the latest."""
        poll, at = self._poll, self._monotonic() + wait_s
        if poll is None or not poll.active():
            self._poll, self._poll_at = self._clock.callLater(wait_s, self._poll_now), at
        elif at < self._poll_at:
            self._poll_at = at
            poll.reset(wait_s)

    def _poll_now(self) -> None:
        if self._not_before <= self._monotonic():
            for state in self._areas.values():
                state.is_open, state.empty_takes = True, 0
        self._on_poll()
        self.schedule()
