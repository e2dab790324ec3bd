"""The delivery task: from the queue to mail hosts, and to maildirs or an LMTP server.

    queue ready -> take -> route -> schedule -> a session, or a maildir -> settle

`taking` takes entries as room allows, `distribution` makes jobs of them, `sessions` and `local` deliver, `settling` settles.
While the queue forbids it (too many outcomes are not durable), nothing is taken and nothing begins.

*Not here*: retries and expiry (`queue.manager`), reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailismus.config.values.settings import DeliverSettings, MessageStoreSettings
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.context import DeliveryContext
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.distribution import JobDistribution
from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.knowledge.host_records import format_line
from mailismus.deliver.limits.domains import Destinations
from mailismus.deliver.limits.parts import SharedLimits
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.local.deliveries import local_deliveries
from mailismus.deliver.queue_seam import DeliveryQueue
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.routes.route import NextHop, Router, lmtp_hop
from mailismus.deliver.schedule.destdb import Deaths, DestDb
from mailismus.deliver.security.policy import TlsPolicy
from mailismus.deliver.security.profile import Profiles
from mailismus.deliver.sessions.all_sessions import Sessions, limits_of
from mailismus.deliver.sessions.host_session import ClientSessionState
from mailismus.deliver.sessions.parts import PartsFollowing
from mailismus.deliver.settling import Settling
from mailismus.deliver.taking import QueueTaking
from mailismus.deliver.why.explain import DeliveryExplanations
from mailismus.deliver.why.overview import DeliveryOverview, deliveries
from mailismus.deliver.why.sentences import Times
from mailismus.deliver.why.survey import View
from mailismus.deliver.why.watch import LOOK_S, HoldWatch
from mailismus.mail.directory import Directory
from mailismus.observe.audit_log import NO_AUDITS, Audits
from mailismus.observe.habits import MAX_HOSTS, Told, WindowHabits
from mailismus.observe.maillog import MailLog
from mailismus.queue.interface import Entry, Message
from mailismus.queue.limits import ILimits
from mailismus.queue.sharing import IHand


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
        limits: ILimits | None = None,
    ) -> None:
        """`limits`: those that hold over all servers of a shared queue; None: limits are this server's."""
        self._queue = queue
        self._context = context
        self._clock, self._monotonic = context.clock, context.monotonic
        self._settling = Settling(queue, maillog, context.clock, context.monotonic, audits)
        self._destdb = DestDb(limits_of(settings), deaths, chance=context.chance, shared=limits)
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
            LimitsOf(settings, context.chance, None if limits is None else SharedLimits(limits, context.monotonic)),
            Secrets(context.secret_workers),
        )
        following = (self.sessions.schedule, self.sessions.giving_back, self.sessions, context.clock)
        self._parts = None if limits is None else PartsFollowing(limits, *following)
        self.local = local_deliveries(store, name, context, queue, self._settling, self._held, self._destdb.limits)
        self._profiles = Profiles()
        self._distribution = JobDistribution(
            *(self.sessions, self.local, self._held, self._settling, self._monotonic),
            *self._routes_of(settings, store, directory),
        )
        self._settings = settings
        self._taking = QueueTaking(
            settings,
            queue,
            self._held,
            self._settling,
            self._distribution,
            context.clock,
            context.monotonic,
            self.local.dispatch,
        )
        self._is_running = False
        self.holds = HoldWatch(self._destdb)
        self._next_look: IDelayedCall | None = None

    def _routes_of(self, settings: DeliverSettings, store: MessageStoreSettings, directory: Directory) -> tuple[Router, int]:
        """The routes of these settings, and how many recipients a transaction may have."""
        policy, destinations = TlsPolicy(settings, self._profiles), Destinations(settings.destinations)
        lmtp = None if store.lmtp is None else lmtp_hop(store.lmtp, directory, self._profiles)
        router = Router(directory, settings.relays, settings.client.mxport, policy, destinations, lmtp)
        return router, settings.maxrecips or 1 << 30

    @property
    def held(self) -> int:
        """Entries taken and not yet settled or given back."""
        return self._held.count

    @property
    def hosts(self) -> DestDb:
        """What is known of hosts."""
        return self._destdb

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
        self._settings = settings
        self._distribution.use(*self._routes_of(settings, store, directory))
        self._taking.use(settings)
        if locator is not None:
            self.sessions.lookups.use_locator(locator)
        if deaths is not None:
            self._destdb.use_deaths(deaths)
        self.sessions.reload(settings)
        self.local.reload(store)
        self._start_taking()

    @property
    def counters(self) -> DeliveryCounters:
        """Totals since the start."""
        return self._settling.counters

    def start(self) -> None:
        """Begin, after `delay_start`."""
        self._is_running = True
        self._context.local_workers.start()
        self._context.secret_workers.start()
        if self._parts is not None:
            self._parts.start()
        self._clock.callLater(self._settings.delay_start_s, self._start_taking)

    def _start_taking(self) -> None:
        if self._is_running:
            self._taking.start(self._start_looking)

    def stop(self, deadline: float) -> Deferred[None]:
        """Begin no transaction, cut off those before their final dot, wait for those after it until `deadline` (monotonic
        seconds); then settle them as in doubt. Fires when all entries are settled or given back."""
        self._is_running = False
        self._taking.stop()
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
        route = self._distribution.route(entry.recipient, message.sender, message.client, entry.words)
        if isinstance(route, NextHop):
            self.sessions.forget_deaths_of(route)

    def clock_jumped(self) -> None:
        """Distrust all knowledge of hosts: the clock was set, or the machine was suspended. Changes no entry in this
        call."""
        self._destdb.forget_deaths()
        self.sessions.forget_hosts()

    # ------------------------------------------------------------------ why mail waits

    def explanations(self, hand: IHand | None = None) -> DeliveryExplanations:
        """Explains entries to one caller, as `queue.waiting.Explanations`. `hand`: as there."""
        return DeliveryExplanations(self._view, self._times, self._distribution.route, self.local.notes, hand)

    def overview(self) -> DeliveryOverview:
        """The fullest and slowest next hops, what holds mail back, and the last failures."""
        return deliveries(self._view(), self._settling.recent, self._destdb.dead_hosts(), self._times())

    def habits(self) -> Iterator[Told]:
        """What receivers did lately, and a record of each dead host as a line; the caller may go on in later turns."""
        book, offset_s = self._settling.habits, self._clock.seconds() - self._monotonic()
        yield from book.hops(self._monotonic())
        hosts = [one.connection.host for one in self.sessions.all if one.state is ClientSessionState.BUSY]
        yield from book.hosts(Counter((host.address, host.port) for host in hosts))
        for host in self._destdb.dead_hosts():
            line = format_line(host.record(offset_s))
            if line is not None:
                yield line
        for (names, port), state in islice(self.sessions.schedule.limits_of.windows(self._monotonic()), MAX_HOSTS):
            yield WindowHabits(names, port, False, state)
        cut = (one for one in self._destdb.endpoints() if one.window is not None and one.window.is_cut)
        for endpoint in islice(cut, MAX_HOSTS):
            assert endpoint.window is not None
            yield WindowHabits((endpoint.address,), endpoint.port, True, endpoint.window.state(self._monotonic()))

    def adopt_windows(self, windows: Iterable[WindowHabits]) -> None:
        """Begin with windows of another process."""
        now = self._monotonic()
        for window in windows:
            if window.is_host:
                self._destdb.adopt_window(window.hosts[0], window.port, window.state, now)
            else:
                self.sessions.schedule.limits_of.adopt((window.hosts, window.port), window.state, now)

    def _view(self) -> View:
        sessions = self.sessions
        taking = self._taking.state(sessions.connector.paused_until)
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
        if self._held.count or self._taking.has_failed or self.holds.is_busy:
            self._start_looking()
