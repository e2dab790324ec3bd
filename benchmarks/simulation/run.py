"""One run: the delivery task as it is, between simulated receivers, names and queue, until its mail is settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, cast

import attrs

from benchmarks.simulation.books import Record
from mailismus.config.values.settings import (
    ClientSettings,
    DeliverSettings,
    DestinationSettings,
    DnsSettings,
    EightBit,
    MessageStoreSettings,
    ScheduleSettings,
)
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.sessions.all_sessions import deaths_of
from mailismus.deliver.task import DeliverTask
from mailismus.mail.directory import Directory
from mailismus.plan.clock import STARTS_AT, VirtualClock
from mailismus.plan.names import RelayNames, SimulatedNames
from mailismus.plan.network import Network
from mailismus.plan.site import ReceivingSite
from mailismus.plan.surroundings import NoLog, SimulatedContext, watched_task
from mailismus.plan.waiting import SimulatedQueue
from mailismus.queue.outcome.retry import RetryRule

LOCAL_DOMAIN = b"home.example"
DELAYS_S = (900.0, 1800.0, 7200.0, 14400.0)
"""The default `retry_delays`."""
MAXTIME_S = 3 * 86400.0


class Arrival(NamedTuple):
    """A message that comes. `at`: seconds from the beginning."""

    at: float
    of_class: str
    sender: bytes
    recipients: list[bytes]


@attrs.frozen
class World:
    """What a run is made of. `sites`: of each domain; None: its name servers are silent. `users`: local ones."""

    sites: dict[str, ReceivingSite | None]
    arrivals: Iterable[Arrival]
    users: frozenset[bytes] = frozenset()

    def kinds(self) -> dict[bytes, str]:
        """The kind of the receiver of each domain."""
        return {
            domain.encode(): "silent names" if site is None else site.habits.kind.value
            for domain, site in self.sites.items()
        }

    def all_sites(self) -> list[ReceivingSite]:
        """Each site once."""
        return list(dict.fromkeys(site for site in self.sites.values() if site is not None))


def settings_of(**changes: Any) -> DeliverSettings:
    """The default `<deliver>`, with changes."""
    whole: dict[str, Any] = {
        "relays": (),
        "destinations": tuple[DestinationSettings, ...](),
        "queuecache": 2500,
        "maxconnections": 2500,
        "maxserverconnections": 20,
        "maxmessages": 100,
        "maxrecips": 50,
        "messages_per_minute": 0,
        "recipients_per_minute": 0,
        "interval_low_s": 0.1,
        "interval_high_s": 15.0,
        "interval_error_s": 180.0,
        "delay_start_s": 0.0,
        "schedule": ScheduleSettings(20, 10, 3, 5.0, 300.0, 300.0, 7200.0, 7200.0),
        "client": ClientSettings(300.0, 30.0, 600.0, 25, True, EightBit.SEND, 25, False, TlsSettings(TlsLevel.NONE)),
        "dns": DnsSettings((), 5.0, are_trusted=False),
    }
    return DeliverSettings(**(whole | changes))


class Watch:
    """What is looked at all the time: the most connections at once."""

    def __init__(self, task: DeliverTask, limit: int) -> None:
        self._task, self._limit = task, limit
        self.most_open = 0
        self.most_held = 0

    def look(self) -> None:
        """Note how many there are now."""
        self.most_open = max(self.most_open, self._task.sessions.open)
        self.most_held = max(self.most_held, self._task.held)
        assert not self._limit or self.most_open <= self._limit, "more connections than workers"


@attrs.frozen
class Result:
    """What came out of a run. Times of the record are those of the virtual clock, from `STARTS_AT`."""

    record: Record
    sites: list[ReceivingSite]
    left: int
    """Recipients that wait for another attempt."""
    settled: int
    overdue: int
    """Of those that are left, the ones that were due and not taken."""
    connections: int
    transactions: int
    attempts: int
    """Connections that became no session, and transactions begun."""
    wasted: int
    most_open: int
    most_held: int
    simulated_s: float
    took_s: float
    events: int

    def fingerprint(self) -> tuple[object, ...]:
        """What differs if anything went another way."""
        delays = {key: (len(one.delay_s), sum(one.delay_s)) for key, one in sorted(self.record.delays.items())}
        return self.left, self.settled, self.connections, self.transactions, self.wasted, self.events, str(delays)


def run(
    world: World,
    settings: DeliverSettings,
    seed: int,
    horizon_s: float,
    patches: AbstractContextManager[object] | None = None,
    is_over: Callable[[Record, SimulatedQueue], bool] = lambda _, queue: not queue.left,
) -> Result:
    """Run this world. It ends at the horizon, or when all mail has come and `is_over`. `patches`: another schedule in place
    of ours while the task is made."""
    began = time.process_time()
    clock = VirtualClock()
    network = Network(clock)
    for site in world.all_sites():
        network.add(site)
    record = Record(world.kinds())
    queue = SimulatedQueue(clock, RetryRule(DELAYS_S, MAXTIME_S), record, seed)
    names = SimulatedNames(clock, world.sites.__getitem__)
    directory = Directory(frozenset({LOCAL_DOMAIN}), world.users | {b"postmaster"}, b"postmaster")
    with patches or nullcontext():
        task = DeliverTask(
            settings,
            MessageStoreSettings("/nonexistent", "Maildir"),
            directory,
            b"mx.example",
            queue,
            NoLog(),
            cast(Any, SimulatedContext(clock, network, seed)),
            Locator(RelayNames(_no_relay), names, press=names.press),
            deaths_of(settings.schedule),
        )
    watch = Watch(task, settings.maxconnections)
    feed = _Feed(clock, queue, record, iter(world.arrivals))
    with watched_task() as faults:

        def over() -> bool:
            watch.look()
            return bool(faults.events) or (feed.is_over and is_over(record, queue))

        task.start()
        feed.begin()
        clock.run(STARTS_AT + horizon_s, over)
    sites = world.all_sites()
    transactions = sum(site.messages for site in sites)
    return Result(
        record,
        sites,
        queue.left,
        queue.settled,
        sum(entry.due_at < clock.now - horizon_s / 10 for entry in queue.entries()),
        sum(site.connections for site in sites),
        transactions,
        transactions + sum(site.failed for site in sites),
        sum(site.wasted for site in sites),
        watch.most_open,
        watch.most_held,
        clock.now - STARTS_AT,
        time.process_time() - began,
        clock.events,
    )


def _no_relay(host: str) -> tuple[str, ...]:
    """Addresses of relays: there are none."""
    raise AssertionError(host)


class _Feed:
    """Submits messages at their times."""

    def __init__(self, clock: VirtualClock, queue: SimulatedQueue, record: Record, arrivals: Iterator[Arrival]) -> None:
        self._clock, self._queue, self._record, self._arrivals = clock, queue, record, arrivals
        self.is_over = False

    def begin(self) -> None:
        """Plan the first message."""
        self._plan_next()

    def _plan_next(self) -> None:
        arrival = next(self._arrivals, None)
        if arrival is None:
            self.is_over = True
        else:
            self._clock.at(STARTS_AT + arrival.at, self._submit, arrival)

    def _submit(self, arrival: Arrival) -> None:
        self._record.came(self._queue.submit(arrival.sender, arrival.recipients), arrival.of_class)
        self._plan_next()
