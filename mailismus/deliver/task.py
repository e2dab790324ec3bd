"""The delivering task: from the queue to the sinks.

    queue ready -> take -> route -> schedule -> a session, or a maildir -> settle

*Rules*
- At most `queuecache` entries are held; there is room again as each is settled, and it is filled at once: no round waits
  for its slowest. Incoming and deferred entries are taken in turn.
- New mail goes at once: the queue says when there is some. The intervals only bound how long something can be
  overlooked: `interval_low` after work, `interval_high` without, `interval_error` after trouble with the queue.
- While the queue may not begin (too many outcomes are not durable) nothing is taken and nothing begun.

*Not here*: retries and expiry (`queue.manager`), reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorFromThreads, IReactorTCP, IReactorTime
from twisted.logger import Logger

from mailismus.config.values.settings import DeliverSettings, MessageStoreSettings
from mailismus.deliver.deposit import Deposits
from mailismus.deliver.hanging import MOST_THREADS
from mailismus.deliver.hosts import Deaths, Hosts
from mailismus.deliver.job import Job
from mailismus.deliver.local import LocalDeliveries
from mailismus.deliver.locator import Locator
from mailismus.deliver.protocol import ClientSession
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.route import Local, NextHop, Router
from mailismus.deliver.schedule import Hop
from mailismus.deliver.sessions import Sessions
from mailismus.deliver.settling import DeliveryCounters, Settling
from mailismus.deliver.watch import HangWatch
from mailismus.deliver.workers import ThreadPool, WorkRunner
from mailismus.errors import StorageError
from mailismus.mail.directory import Directory
from mailismus.maildir.names import NameSource
from mailismus.observe.audit_log import NO_AUDITS, Audits
from mailismus.observe.maillog import MailLog
from mailismus.queue.interface import Area, Entry, Message

BATCH = 500
"""Entries taken at a time at most: a turn of the reactor is not to last long."""
_AREAS = (Area.INCOMING, Area.DEFERRED)


class DeliveryContext(Protocol):
    """The world, as far as the task asks for it. `clock` tells UTC, `monotonic` never jumps."""

    @property
    def tcp(self) -> IReactorTCP: ...
    @property
    def clock(self) -> IReactorTime: ...
    @property
    def monotonic(self) -> Callable[[], float]: ...
    @property
    def local_workers(self) -> WorkRunner: ...


class RealDeliveryContext:
    """The world of a running server."""

    def __init__(self, tcp: IReactorTCP, clock: IReactorTime, threads: IReactorFromThreads) -> None:
        self.tcp, self.clock = tcp, clock
        self.monotonic = time.monotonic
        self.local_workers = ThreadPool("maildir", MOST_THREADS + 1, threads.callFromThread)  # and one for the mount table


class DeliverTask:
    """The task. `name`: how this host calls itself (EHLO, names of maildir files); `locator`: finds hosts;
    `deaths`: for how long a host that failed is left alone."""

    log = Logger()

    def __init__(
        self,
        settings: DeliverSettings,
        store: MessageStoreSettings,
        directory: Directory,
        name: bytes,
        queue: DeliveryQueue,
        maillog: MailLog,
        world: DeliveryContext,
        locator: Locator,
        deaths: Deaths,
        audits: Audits = NO_AUDITS,
    ) -> None:
        self._queue = queue
        self._world = world
        self._clock, self._monotonic = world.clock, world.monotonic
        self._settling = Settling(queue, maillog, world.clock.seconds, world.monotonic, audits)
        self._hosts = Hosts(deaths)
        self.sessions = Sessions(
            settings,
            name,
            world.tcp,
            world.clock,
            world.monotonic,
            queue,
            self._settling,
            locator,
            self._hosts,
            self._on_free,
            self._room,
        )
        deposits = Deposits(store, NameSource(name), world.local_workers, world.clock.seconds, world.monotonic)
        self.local = LocalDeliveries(
            deposits,
            HangWatch(deposits, world.local_workers),
            queue,
            self._settling,
            world.clock,
            world.monotonic,
            self._on_free,
            self._room,
        )
        self._adopt(settings, directory)
        self.held = 0
        """Entries taken and not yet settled or given back."""
        self._is_open = dict.fromkeys(_AREAS, True)
        self._vain = dict.fromkeys(_AREAS, 0)
        self._listening: set[Area] = set()
        self._turn = 0
        self._is_running = self._is_pumping = self._is_asked = self._waits_to_begin = False
        self._poll: IDelayedCall | None = None
        self._poll_at = 0.0
        """Monotonic seconds; a timer's own idea of its time may be on another clock."""
        self._not_before = 0.0

    def _adopt(self, settings: DeliverSettings, directory: Directory) -> None:
        self._settings = settings
        self._router = Router(directory, settings.relays, settings.client.mxport)
        self._cache = settings.queuecache or 1 << 30
        self._enough_room = max(1, min(100, self._cache // 4))
        self._max_recipients = settings.maxrecips or 1 << 30

    @property
    def troubled_hosts(self) -> int:
        """Hosts with which no session could be had, and none was since."""
        return self._hosts.remembered

    def reload(
        self,
        settings: DeliverSettings,
        store: MessageStoreSettings,
        directory: Directory,
        locator: Locator | None = None,
        deaths: Deaths | None = None,
    ) -> None:
        """Other settings: takings, routes and attempts go by them from now on, those under way by the old. `delay_start` is
        over. `locator`, `deaths` None: as before."""
        self._adopt(settings, directory)
        if locator is not None:
            self.sessions.connector.locator = locator
        if deaths is not None:
            self._hosts.deaths = deaths
        self.sessions.reload(settings)
        self.local.reload(store)
        if self._is_running:
            self._ask()

    @property
    def counters(self) -> DeliveryCounters:
        """What has been done so far."""
        return self._settling.counters

    def start(self) -> None:
        """Begin, after `delay_start`."""
        self._is_running = True
        self._clock.callLater(self._settings.delay_start_s, self._ask)

    def stop(self, deadline: float) -> Deferred[None]:
        """No transaction is begun, one before its final dot is cut off, one behind it is waited for until `deadline`
        (monotonic seconds); what is unanswered then is settled as in doubt. Fires when all is settled or given back."""
        self._is_running = False
        if self._poll is not None and self._poll.active():
            self._poll.cancel()
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
        finished.addCallback(lambda _: self._world.local_workers.stop())
        return finished

    def forget_deaths(self) -> None:
        """No host counts as dead any more (a flush)."""
        self._hosts.forget_deaths()

    def clock_jumped(self) -> None:
        """The clock was set, or the machine was suspended: nothing that was known of hosts before is worth anything. Decides
        nothing about entries in this call."""
        self._hosts.forget_deaths()
        self.sessions.forget_hosts()

    # ------------------------------------------------------------------ taking

    def _ask(self) -> None:
        """Something may have come, or there may be room again: go and see, in a turn of its own."""
        if self._is_running and not self._is_asked:
            self._is_asked = True
            self._clock.callLater(0, self._pump)

    def _room(self) -> int:
        return self._cache - self.held

    def _on_free(self, count: int) -> None:
        self.held -= count
        if not self._is_asked and self._room() >= self._enough_room and any(self._is_open.values()):
            self._ask()

    def _pump(self) -> None:
        self._is_asked = False
        if self._is_pumping or not self._is_running:
            return
        wait_s = self._not_before - self._monotonic()
        if wait_s > 0:
            self._poll_in(wait_s)
            return
        if not self._queue.may_begin:
            if not self._waits_to_begin:
                self._waits_to_begin = True
                self._queue.when_may_begin().addCallback(self._on_may_begin)
            return
        area = self._next_area()
        room = self._room()
        if area is None or room < self._enough_room:
            self._poll_in(self._interval_s(is_idle=area is None))
            return
        self._is_pumping = True
        limit = min(room, BATCH)
        self._queue.take(area, limit).addCallbacks(self._taken, self._not_taken, (area, limit)).addErrback(self._bug)

    def _on_may_begin(self, _: None) -> None:
        self._waits_to_begin = False
        self._ask()

    def _next_area(self) -> Area | None:
        for step in (0, 1):
            area = _AREAS[(self._turn + step) % 2]
            if self._is_open[area]:
                self._turn = (self._turn + step + 1) % 2
                return area
        return None

    def _taken(self, messages: list[Message], area: Area, limit: int) -> None:
        self._is_pumping = False
        count = 0
        for message in messages:
            count += len(message.entries)
        if not self._is_running:
            for message in messages:
                self._queue.give_back(message, message.entries, 0.0)
            return
        if count:
            self._vain[area] = 0
            self.held += count
            self.counters.taken += count
            self._distribute(messages)
        else:
            self._vain[area] += 1
        if count < limit:  # that was all: the queue says when there is more
            self._is_open[area] = False
            if self._vain[area] > 2:
                self._clock.callLater(self._settings.interval_low_s, self._listen, area)
            else:
                self._listen(area)
        if any(self._is_open.values()):
            self._ask()
        else:
            self._poll_in(self._interval_s(is_idle=True))

    def _not_taken(self, failure: object) -> None:
        self._is_pumping = False
        failure.trap(StorageError)  # type: ignore[attr-defined]  # a Failure; Twisted types errbacks loosely
        self.log.error("The queue can't be read: {error}", error=str(failure.value))  # type: ignore[attr-defined]  # as above
        self._not_before = self._monotonic() + self._settings.interval_error_s
        self._ask()

    def _bug(self, failure: object) -> None:
        self._is_pumping = False
        self.log.failure("Taking from the queue failed unexpectedly", failure)  # type: ignore[arg-type]  # a Failure
        self._not_before = self._monotonic() + self._settings.interval_error_s
        self._ask()

    def _listen(self, area: Area) -> None:
        if self._is_running and area not in self._listening:
            self._listening.add(area)
            self._queue.ready(area).addCallbacks(self._on_ready, self._on_deaf, callbackArgs=(area,), errbackArgs=(area,))

    def _on_deaf(self, failure: object, area: Area) -> None:
        """The queue is closed or in trouble: the poll asks again."""
        self._listening.discard(area)

    def _on_ready(self, _: None, area: Area) -> None:
        self._listening.discard(area)
        self._is_open[area] = True
        self._ask()

    # ------------------------------------------------------------------ the safety net

    def _interval_s(self, is_idle: bool) -> float:
        """How long to wait, at most, before looking without being told."""
        settings = self._settings
        wait_s = settings.interval_high_s if is_idle else settings.interval_low_s
        now = self._clock.seconds()
        for area in _AREAS:
            due_at = self._queue.next_due(area)
            if due_at is not None:
                wait_s = min(wait_s, max(0.02, due_at - now) if due_at > now else settings.interval_low_s)
        return wait_s

    def _poll_in(self, wait_s: float) -> None:
        """Look again in so many seconds at the latest."""
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
                self._vain[area] = 0
        self.local.dispatch()
        self._ask()

    # ------------------------------------------------------------------ routing

    def _distribute(self, messages: list[Message]) -> None:
        """Jobs for what was taken: one for the recipients of a message that share a next hop."""
        now = self._monotonic()
        route_of = self._router.route
        add = self.sessions.add
        touched: set[Hop[ClientSession]] = set()
        for message in messages:
            entries = message.entries
            if len(entries) == 1:
                route = route_of(entries[0].recipient, message.sender, message.client)
                if isinstance(route, NextHop):
                    touched.add(add(route, Job(message, entries, now)))
                    continue
            by_hop: dict[NextHop, list[Entry]] = {}
            for entry in entries:
                route = route_of(entry.recipient, message.sender, message.client)
                if isinstance(route, NextHop):
                    by_hop.setdefault(route, []).append(entry)
                elif isinstance(route, Local):
                    self.local.add(route.user, Job(message, [entry], now))
                else:
                    self.held -= 1
                    self._settling.settle_unrouted(Job(message, [entry], now), route)
            each = self._max_recipients
            for next_hop, group in by_hop.items():
                for start in range(0, len(group), each):
                    touched.add(add(next_hop, Job(message, group[start : start + each], now)))
        self.sessions.dispatch(touched)
        self.local.dispatch()
