"""The delivery task: from the queue to mail hosts and maildirs.

    queue ready -> take -> route -> schedule -> a session, or a maildir -> settle

*Rules*
- At most `queuecache` entries are held. Each settled entry makes room, which is filled at once: no batch waits for its
  slowest entry. Incoming and deferred entries are taken in turn.
- No sender and no next hop holds more than its share of the room (`room`). The queue passes over a sender that has it; what
  goes beyond the share of a next hop is given back when it is routed.
- New mail is taken at once, when the queue reports it. The intervals only limit how long an entry can be overlooked:
  `interval_low` after work, `interval_high` without, `interval_error` after a failure of the queue.
- While the queue forbids it (too many outcomes are not durable), nothing is taken and nothing begins.

*Not here*: retries and expiry (`queue.manager`), reports.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorFromThreads, IReactorTCP, IReactorTime
from twisted.logger import Logger

from mailismus.config.values.settings import DeliverSettings, MessageStoreSettings
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.deposit import Deposits
from mailismus.deliver.file_systems import FileSystems
from mailismus.deliver.hanging import MAX_THREADS
from mailismus.deliver.held import HeldEntries, SenderShares
from mailismus.deliver.job import Job
from mailismus.deliver.local import LocalDeliveries
from mailismus.deliver.locator import Locator
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.route import Local, NextHop, Router
from mailismus.deliver.schedule.choice import PickOne
from mailismus.deliver.schedule.destdb import Deaths, DestDb
from mailismus.deliver.security.policy import TlsPolicy
from mailismus.deliver.security.profile import Profiles
from mailismus.deliver.sessions import Sessions, limits_of
from mailismus.deliver.settling import Settling
from mailismus.deliver.watch import HangWatch
from mailismus.deliver.why.explain import DeliveryExplanations
from mailismus.deliver.why.sentences import Times
from mailismus.deliver.why.survey import Taking, View
from mailismus.deliver.why.watch import LOOK_S, HoldWatch
from mailismus.disk.worker import IWorker, ThreadPool
from mailismus.errors import StorageError
from mailismus.mail.directory import Directory
from mailismus.mail.outcome import Outcome
from mailismus.maildir.names import NameSource
from mailismus.observe.audit_log import NO_AUDITS, Audits
from mailismus.observe.maillog import MailLog
from mailismus.queue.interface import Area, Entry, Message

BATCH = 500
"""Most entries in one take: a turn of the reactor must be short."""
SURPLUS_PAUSE_S = 0.02
"""Seconds until the next take after one that brought more for a next hop than its share: it may be all that waits."""
SHORT_S = 5.0
"""Room counts as short for so long after a sender or next hop had more mail than its share."""
_AREAS = (Area.INCOMING, Area.DEFERRED)


class DeliveryContext(Protocol):
    """Reactor and clocks of the task. `clock` tells UTC, `monotonic` never jumps."""

    @property
    def tcp(self) -> IReactorTCP: ...
    @property
    def clock(self) -> IReactorTime: ...
    @property
    def monotonic(self) -> Callable[[], float]: ...
    @property
    def local_workers(self) -> IWorker: ...
    @property
    def secret_workers(self) -> IWorker: ...
    @property
    def pick(self) -> PickOne: ...
    @property
    def chance(self) -> Callable[[], float]: ...


class RealDeliveryContext:
    """The context of a running server."""

    def __init__(self, tcp: IReactorTCP, clock: IReactorTime, threads: IReactorFromThreads) -> None:
        self.tcp, self.clock = tcp, clock
        self.monotonic = time.monotonic
        self.pick: PickOne = random.choice
        self.chance = random.random
        self.local_workers = ThreadPool(threads, "maildir", MAX_THREADS + 1)  # one more for the mount table
        self.secret_workers = ThreadPool(threads, "secrets", 2)


class DeliverTask:
    """The task. `name`: this host's name (EHLO, names of maildir files). `locator`: finds hosts. `deaths`: for how long a
    failed host is avoided."""

    log = Logger()

    def __init__(
        self,
        settings: DeliverSettings,
        store: MessageStoreSettings,
        directory: Directory,
        name: bytes,
        queue: DeliveryQueue,
        maillog: MailLog,
        context: DeliveryContext,
        locator: Locator,
        deaths: Deaths,
        audits: Audits = NO_AUDITS,
    ) -> None:
        self._queue = queue
        self._context = context
        self._clock, self._monotonic = context.clock, context.monotonic
        self._settling = Settling(queue, maillog, context.clock, context.monotonic, audits)
        self._destdb = DestDb(limits_of(settings), deaths, chance=context.chance)
        # In a turn of its own: the caller may be inside an engine.
        self._held = HeldEntries(partial(context.clock.callLater, 0, queue.room_again))
        self.sessions = Sessions(
            settings,
            name,
            context.tcp,
            context.clock,
            context.monotonic,
            queue,
            self._settling,
            locator,
            self._destdb,
            self._held,
            context.pick,
            context.chance,
            Secrets(context.secret_workers),
        )
        deposits = Deposits(store, NameSource(name), context.local_workers, context.clock.seconds, context.monotonic)
        self.local = LocalDeliveries(
            deposits,
            HangWatch(deposits, FileSystems(deposits, context.local_workers)),
            queue,
            self._settling,
            context.clock,
            context.monotonic,
            self._held,
            self._destdb.limits,
        )
        self._profiles = Profiles()
        self._adopt(settings, directory)
        self._is_open = dict.fromkeys(_AREAS, True)
        self._empty_takes = dict.fromkeys(_AREAS, 0)
        self._listening: set[Area] = set()
        self._turn = 0
        self._is_running = self._is_pumping = self._is_pump_scheduled = self._waits_to_begin = False
        self._poll: IDelayedCall | None = None
        self._poll_at = 0.0
        """Monotonic seconds; the timer's own time may be that of another clock."""
        self._not_before = 0.0
        self._error = ""
        """Why the queue could not be read; empty: it could."""
        self._has_begun = False
        self._short_at = -math.inf
        """When a sender or next hop had more mail than its share last."""
        self.holds = HoldWatch(self._destdb)
        self._next_look: IDelayedCall | None = None

    def _adopt(self, settings: DeliverSettings, directory: Directory) -> None:
        self._settings = settings
        policy = TlsPolicy(settings, self._profiles)
        self._router = Router(directory, settings.relays, settings.client.mxport, policy)
        cache = settings.queuecache or 1 << 30
        self._held.set_limit(cache)
        self._enough_room = max(1, self._held.kept // 4)
        self._max_recipients = settings.maxrecips or 1 << 30

    @property
    def held(self) -> int:
        """Entries taken and not yet settled or given back."""
        return self._held.count

    @property
    def hosts(self) -> DestDb:
        """What is known of hosts."""
        return self._destdb

    @property
    def troubled_hosts(self) -> int:
        """Number of hosts that have died and had no session since."""
        return self._destdb.remembered

    def reload(
        self,
        settings: DeliverSettings,
        store: MessageStoreSettings,
        directory: Directory,
        locator: Locator | None = None,
        deaths: Deaths | None = None,
    ) -> None:
        """Use other settings for later takes, routes and attempts; those under way keep the old ones. `delay_start` is over.
        `locator`, `deaths` None: unchanged."""
        self._adopt(settings, directory)
        if locator is not None:
            self.sessions.lookups.use_locator(locator)
        if deaths is not None:
            self._destdb.use_deaths(deaths)
        self.sessions.reload(settings)
        self.local.reload(store)
        if self._is_running:
            self._schedule_pump()

    @property
    def counters(self) -> DeliveryCounters:
        """Totals since the start."""
        return self._settling.counters

    def start(self) -> None:
        """Begin, after `delay_start`."""
        self._is_running = True
        self._context.local_workers.start()
        self._context.secret_workers.start()
        self._clock.callLater(self._settings.delay_start_s, self._schedule_pump)

    def stop(self, deadline: float) -> Deferred[None]:
        """Begin no transaction, cut off those before their final dot, wait for those after it until `deadline` (monotonic
        seconds); then settle them as in doubt. Fires when all entries are settled or given back."""
        self._is_running = False
        if self._poll is not None and self._poll.active():
            self._poll.cancel()
        if self._next_look is not None and self._next_look.active():
            self._next_look.cancel()
        done = DeferredList([self.sessions.stop(), self.local.stop()])

        def give_up() -> None:
            self.sessions.abort()
            self.local.abort()
            finished.callback(None)

        finished: Deferred[None] = Deferred()
        timer = self._clock.callLater(max(0.0, deadline - self._monotonic()), give_up)

        def in_time(_: object) -> None:
            if timer.active():
                timer.cancel()
                finished.callback(None)

        done.addCallback(in_time)
        return finished.addCallback(self._end)

    def _end(self, _: None) -> None:
        self._settling.flush()
        self._context.local_workers.leave()
        self._context.secret_workers.leave()

    def forget_deaths(self) -> None:
        """Treat no host as dead any more, nor its TLS as broken (after a flush)."""
        self._destdb.forget_deaths()
        self.sessions.tls.fallbacks.clear()

    def forget_deaths_of(self, message: Message, entry: Entry) -> None:
        """Treat no host of this entry as dead any more (after a flush of it)."""
        route = self._router.route(entry.recipient, message.sender, message.client)
        if isinstance(route, NextHop):
            self.sessions.forget_deaths_of(route)

    def clock_jumped(self) -> None:
        """Distrust all knowledge of hosts: the clock was set, or the machine was suspended. Changes no entry in this
        call."""
        self._destdb.forget_deaths()
        self.sessions.forget_hosts()

    # ------------------------------------------------------------------ why mail waits

    def explanations(self) -> DeliveryExplanations:
        """Explains entries to one caller, as `queue.waiting.Explanations`."""
        return DeliveryExplanations(self._view, self._times, lambda *names: self._router.route(*names), self.local.notes)

    def _view(self) -> View:
        settling, sessions = self._settling, self.sessions
        taking = Taking(
            is_begun=self._is_running and self._has_begun,
            is_full=(any(self._is_open.values()) and self._held.room() < self._enough_room)
            or self._monotonic() - self._short_at < SHORT_S,
            most=self._held.count + self._held.room(),
            unreadable_until=self._not_before if self._error else 0.0,
            error=self._error,
            in_doubt=0 if settling.may_begin else settling.in_doubt,
            machine_until=sessions.connector.paused_until,
        )
        return View(sessions.schedule, sessions.all, sessions.lookups, self.local, self._held, taking)

    def _times(self) -> Times:
        return Times(self._clock.seconds(), self._monotonic())

    def _start_looking(self) -> None:
        """Look for holds while there may be some."""
        if self._next_look is None and self._is_running:
            self._next_look = self._clock.callLater(LOOK_S, self._look)

    def _look(self) -> None:
        self._next_look = None
        try:
            self.holds.look(self._view(), self._times())
        except Exception:  # a bug must not end the looks
            self.log.failure("What holds mail back could not be found")
        if self._held.count or self._error or self.holds.is_busy:
            self._start_looking()

    # ------------------------------------------------------------------ taking

    def _schedule_pump(self) -> None:
        """Take entries in a turn of its own: there may be new ones, or room again."""
        if self._is_running and not self._is_pump_scheduled:
            self._is_pump_scheduled = True
            self._clock.callLater(0, self._pump)

    def _pump(self) -> None:
        self._is_pump_scheduled, self._has_begun = False, True
        if self._is_pumping or not self._is_running:
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
        area = self._next_area()
        room = self._held.room()
        if area is None or room < self._enough_room:
            if area is not None:
                self._held.wait_for(self._enough_room, self._schedule_pump)
            self._poll_in(self._interval_s(is_idle=area is None))
            return
        self._is_pumping = True
        limit = min(room, BATCH)
        shares = self._held.shares(limit)
        taking = self._queue.take(area, limit, shares)
        taking.addCallbacks(self._taken, self._not_taken, (area, limit, shares)).addErrback(self._on_bug)

    def _on_may_begin(self, _: None) -> None:
        self._waits_to_begin = False
        self._schedule_pump()

    def _next_area(self) -> Area | None:
        for step in (0, 1):
            area = _AREAS[(self._turn + step) % 2]
            if self._is_open[area]:
                self._turn = (self._turn + step + 1) % 2
                return area
        return None

    def _taken(self, messages: list[Message], area: Area, limit: int, shares: SenderShares | None) -> None:
        self._is_pumping = False
        if not self._is_running:
            for message in messages:
                self._queue.give_back(message, message.entries, 0.0)
            return
        self._error = ""
        count = self._held.add(messages)
        if count:
            self._start_looking()
            self._empty_takes[area] = 0
            self.counters.count_taken(count)
            self._distribute(messages, is_tight=shares is not None)
        elif shares is None or not shares.is_passed_over:
            self._empty_takes[area] += 1
        if shares is not None and shares.is_passed_over:
            self._short_at = self._monotonic()
        self._held.end_take()
        if count < limit:  # the area is empty: the queue reports new entries
            self._is_open[area] = False
            if self._empty_takes[area] > 2:
                self._clock.callLater(self._settings.interval_low_s, self._listen, area)
            else:
                self._listen(area)
        if any(self._is_open.values()):
            self._schedule_pump()
        else:
            self._poll_in(self._interval_s(is_idle=True))

    def _not_taken(self, failure: object) -> None:
        self._is_pumping = False
        self._held.end_take()
        failure.trap(StorageError)  # type: ignore[attr-defined]  # a Failure; Twisted types errbacks loosely
        self._error = str(failure.value)  # type: ignore[attr-defined]  # as above
        self.log.error("The queue can't be read: {error}", error=self._error)
        self._start_looking()
        self._not_before = self._monotonic() + self._settings.interval_error_s
        self._schedule_pump()

    def _on_bug(self, failure: object) -> None:
        self._is_pumping = False
        self._held.end_take()
        self.log.failure("Taking from the queue failed unexpectedly", failure)  # type: ignore[arg-type]  # a Failure
        self._not_before = self._monotonic() + self._settings.interval_error_s
        self._schedule_pump()

    def _listen(self, area: Area) -> None:
        if self._is_running and area not in self._listening:
            self._listening.add(area)
            self._queue.ready(area).addCallbacks(self._on_ready, self._not_ready, callbackArgs=(area,), errbackArgs=(area,))

    def _not_ready(self, failure: object, area: Area) -> None:
        """Stop listening: the queue is closed or failed; the poll asks again."""
        self._listening.discard(area)

    def _on_ready(self, _: None, area: Area) -> None:
        self._listening.discard(area)
        self._is_open[area] = True
        self._schedule_pump()

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
            self._poll, self._poll_at = self._clock.callLater(wait_s, self._on_poll), at
        elif at < self._poll_at:
            self._poll_at = at
            poll.reset(wait_s)

    def _on_poll(self) -> None:
        if self._not_before <= self._monotonic():
            for area in _AREAS:
                self._is_open[area] = True
                self._empty_takes[area] = 0
        self.local.dispatch()
        self._schedule_pump()

    # ------------------------------------------------------------------ routing

    def _distribute(self, messages: list[Message], *, is_tight: bool) -> None:
        """Make jobs of the taken entries: one for the recipients of a message with the same next hop. `is_tight`: a next hop
        may get more than its share of the room."""
        now = self._monotonic()
        router, each = self._router, self._max_recipients
        waiting: dict[NextHop, list[Job]] = {}
        jobs: list[Job] = []
        jobs_for: NextHop | None = None  # the next hop of `jobs`: the routes of a domain are one object
        for message in messages:
            entries = message.entries
            if len(entries) == 1:
                route = router.route(entries[0].recipient, message.sender, message.client)
                if isinstance(route, NextHop):
                    if route is not jobs_for:
                        jobs_for, jobs = route, waiting.setdefault(route, [])
                    jobs.append(
                        Job(message, entries, now, route)
                        if message.recipient_count == 1
                        else self.sessions.job(message, entries, route, now)
                    )
                else:
                    self._settle_here(message, entries[0], route, now)
                continue
            by_hop, others = router.split(message)
            for next_hop, group in by_hop.items():
                most = self.sessions.most_recipients(next_hop, each)
                parts = [group] if len(group) <= most else [group[i : i + most] for i in range(0, len(group), most)]
                waiting.setdefault(next_hop, []).extend([self.sessions.job(message, part, next_hop, now) for part in parts])
            for entry, other in others:
                self._settle_here(message, entry, other, now)
        if is_tight and self.sessions.giving_back.give_back_surplus(waiting, now):
            self._not_before = now + SURPLUS_PAUSE_S
            self._short_at = now
        for next_hop, some in waiting.items():
            if some:
                self.sessions.add(next_hop, some, now, each)
        self.local.dispatch()

    def _settle_here(self, message: Message, entry: Entry, route: Local | Outcome, now: float) -> None:
        """Deliver an entry into a maildir, or settle it: it has no next hop."""
        job = Job(message, [entry], now)
        if isinstance(route, Local):
            self.local.add(route.user, job)
        else:
            self._held.free(message.sender, 1)
            self._settling.settle_unrouted(job, route)
