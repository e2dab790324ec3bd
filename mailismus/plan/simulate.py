"""One run: the delivery task as it is, over a snapshot, until everything has left, the time is over, or processor time is.

*Rules*: TLS, credentials and audit logs take no part. Nothing comes in while it runs, and no report is made. The same seed
gives the same forecast. It runs in the caller's thread, and asks nothing of a running server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import attrs

from mailismus.config.values.settings import DeliverSettings, Settings
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.deliver.limits.domains import Destinations
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.routes.route import Local, NextHop, Route, Router, lmtp_hop
from mailismus.deliver.security.profile import Profiles
from mailismus.deliver.sessions.all_sessions import deaths_of
from mailismus.deliver.task import DeliverTask
from mailismus.deliver.why.overview import LOCAL_NAME, name_of_hop
from mailismus.mail.ids import QueueId
from mailismus.observe.habits import Habits
from mailismus.observe.text import shown
from mailismus.plan.books import ForecastBooks
from mailismus.plan.clock import STARTS_AT, VirtualClock
from mailismus.plan.forecast import TRACED, EntryForecast, Forecast
from mailismus.plan.names import RelayNames, SimulatedNames
from mailismus.plan.network import Network
from mailismus.plan.snapshot import Snapshot
from mailismus.plan.surroundings import NoLog, SimulatedContext, watched_task
from mailismus.plan.waiting import SimulatedQueue
from mailismus.plan.world import ForecastWorld, Key, key_of
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.outcome.retry import RetryRule

NOWHERE_NAME = "no host"
"""The next hop of entries that have none."""
_PLAIN = TlsSettings(TlsLevel.NONE)
LOOK_S = 0.5
"""Processor time between two looks at it."""


@attrs.frozen
class PlanOrder:
    """What is asked for. `until_s`: from the snapshot; `cpu_s`: processor time; `without`: a host that is left out."""

    until_s: float
    cpu_s: float
    seed: int
    without: str = ""


class UnknownHost(LookupError):
    """The host that is to be left out takes no mail of the queue."""


def plain_settings(settings: DeliverSettings) -> DeliverSettings:
    """The settings without TLS, credentials, and a pause at the start."""
    return attrs.evolve(
        settings,
        relays=tuple(attrs.evolve(relay, tls=None, auth=None) for relay in settings.relays),
        destinations=tuple(attrs.evolve(one, tls=None) for one in settings.destinations),
        client=attrs.evolve(settings.client, tls=_PLAIN),
        delay_start_s=0.0,
        audit=None,
    )


class _Grouping:
    """The next hop of each entry, in a word."""

    def __init__(self, settings: Settings) -> None:
        deliver, store = settings.deliver, settings.message_store
        lmtp = None if store.lmtp is None else lmtp_hop(store.lmtp, settings.directory, Profiles())
        limits = Destinations(deliver.destinations)
        self._router = Router(settings.directory, deliver.relays, deliver.client.mxport, None, limits, lmtp)
        self.keys: dict[str, Key] = {}
        """Of the names that were told."""

    def hop_of(self, message: Message, entry: Entry) -> NextHop | None:
        """The next hop; None: there is none."""
        route = self._route(message, entry)
        return route if isinstance(route, NextHop) else None

    def name_of(self, message: Message, entry: Entry) -> str:
        """Its name."""
        route = self._route(message, entry)
        if isinstance(route, NextHop):
            name = name_of_hop(route)
            if name not in self.keys:
                self.keys[name] = key_of(route)
            return name
        return LOCAL_NAME if isinstance(route, Local) else NOWHERE_NAME

    def _route(self, message: Message, entry: Entry) -> Route:
        return self._router.route(entry.recipient, message.sender, message.client, entry.words)


def simulate(
    snapshot: Snapshot,
    habits: Habits,
    settings: Settings,
    order: PlanOrder,
    progress: Callable[[float], None] = lambda _: None,
) -> Forecast:
    """Run the delivery task over a snapshot. `progress` hears of the simulated seconds, now and then. Raises
    `UnknownHost`."""
    began = time.process_time()
    settings = attrs.evolve(settings, deliver=plain_settings(settings.deliver))
    deliver, retry = settings.deliver, settings.queue.retry
    clock = VirtualClock()
    world = ForecastWorld(habits, deliver.client.mxport, order.seed, order.without)
    grouping = _Grouping(settings)
    asked = _traced(snapshot)
    books = ForecastBooks(grouping.name_of, snapshot.wanted, asked)
    rule, of_reports = RetryRule(retry.delays_s, retry.maxtime_s), RetryRule(retry.delays_s, retry.maxtime_reports_s)
    queue = SimulatedQueue(clock, rule, books, order.seed, of_reports)
    keys: dict[Key, None] = {}
    for message in snapshot.messages:
        for entry in message.entries:
            next_hop = grouping.hop_of(message, entry)
            if next_hop is not None:
                keys[key_of(next_hop)] = None
                world.remember(next_hop, message, entry, retry.delays_s)
        books.expect(message, message.entries)
    for key in keys:
        world.site_of(key)
    if order.without and not world.met_without:
        raise UnknownHost(order.without)
    world.preload(clock.now)
    names = SimulatedNames(clock, world.site_of_domain)
    task = DeliverTask(
        deliver,
        settings.message_store,
        settings.directory,
        settings.application.announcehost,
        queue,
        NoLog(),
        cast(Any, SimulatedContext(clock, Network(clock, world.site_at), order.seed)),
        Locator(RelayNames(world.addresses_of), names, press=names.press),
        deaths_of(deliver.schedule),
    )
    task.hosts.adopt(world.records.values(), clock.now, snapshot.shift_s)
    task.adopt_windows(habits.windows)
    queue.load(_copies(snapshot.messages))
    budget = _Budget(began + order.cpu_s, clock, progress)
    with watched_task() as faults:
        task.start()
        clock.run(STARTS_AT + order.until_s, lambda: bool(faults.events) or not queue.left or budget.is_over())
    ends_at = clock.now if budget.has_ended or not queue.left else STARTS_AT + order.until_s
    return _told(snapshot, order, books, grouping, world, queue, ends_at, budget, time.process_time() - began)


def _copies(messages: Iterable[Message]) -> Iterable[Message]:
    """Copies, which the run may change."""
    for message in messages:
        yield attrs.evolve(message, entries=[attrs.evolve(entry) for entry in message.entries])


def _traced(snapshot: Snapshot) -> frozenset[QueueId]:
    """The entries whose attempts are told: those that are asked about, if they are few."""
    wanted = snapshot.wanted
    return wanted if wanted is not None and len(wanted) <= TRACED else frozenset()


class _Budget:
    """Processor time until a moment of `time.process_time`."""

    def __init__(self, until: float, clock: VirtualClock, progress: Callable[[float], None]) -> None:
        self._until, self._clock, self._progress = until, clock, progress
        self._asked = 0
        self.has_ended = False

    def is_over(self) -> bool:
        """Whether it is over; looked at now and then."""
        self._asked += 1
        if self._asked % 500:
            return self.has_ended
        self._progress(self._clock.now - STARTS_AT)
        self.has_ended = time.process_time() >= self._until
        return self.has_ended


def _told(
    snapshot: Snapshot,
    order: PlanOrder,
    books: ForecastBooks,
    grouping: _Grouping,
    world: ForecastWorld,
    queue: SimulatedQueue,
    ends_at: float,
    budget: _Budget,
    took_s: float,
) -> Forecast:
    shift_s = snapshot.shift_s
    hops = [
        book.told(STARTS_AT, ends_at, shift_s, world.told_of(grouping.keys[name]) if name in grouping.keys else ())
        for name, book in books.hops.items()
    ]
    hops.sort(key=lambda hop: (-hop.left, -(hop.gone_at or 0.0), -hop.entries, hop.name))
    return Forecast(
        snapshot.utc,
        snapshot.utc + order.until_s,
        ends_at + shift_s,
        budget.has_ended,
        tuple(hops),
        books.whole.told(STARTS_AT, ends_at, shift_s, ()),
        tuple(_told_entries(snapshot, books, grouping, queue)) if books.traces else (),
        snapshot.left_out,
        snapshot.others[Area.HELD],
        snapshot.others[Area.BOUNCES],
        took_s,
    )


def _told_entries(
    snapshot: Snapshot, books: ForecastBooks, grouping: _Grouping, queue: SimulatedQueue
) -> Iterator[EntryForecast]:
    """What becomes of the entries that are traced."""
    shift_s = snapshot.shift_s
    due = {QueueId(spool_id, number): entry.due_at + shift_s for spool_id, number, entry in queue.waiting()}
    for message in snapshot.messages:
        for entry in message.entries:
            queue_id = QueueId(message.spool_id, entry.number)
            trace = books.traces.get(queue_id)
            if trace is not None:
                attempts = tuple(attrs.evolve(one, at=one.at + shift_s) for one in trace)
                name = grouping.name_of(message, entry)
                yield EntryForecast(str(queue_id), shown(entry.final_recipient), name, attempts, due.get(queue_id))
