"""The delivering task on a clock, a network and a queue in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailismus.config.values.settings import (
    ClientSettings,
    DeliverSettings,
    DnsSettings,
    EightBit,
    LmtpSettings,
    MessageStoreSettings,
    RelaySettings,
    RetrySettings,
    ScheduleSettings,
)
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.schedule.choice import PickOne
from mailismus.deliver.schedule.destdb import Deaths
from mailismus.deliver.task import DeliverTask
from mailismus.dns.mx import MxHost
from mailismus.mail.directory import Directory
from mailismus.mail.envelope import Envelope
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.maildir.delivery import begin_delivery
from mailismus.maildir.store import MaildirStore
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, Filter, Page
from mailismus.queue.limits import ILimits
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.memory.provider import MemoryQueue
from mailismus.queue.waiting import Waiting
from tests.fakes.managing import accept
from tests.fakes.network import Network
from tests.fakes.sink import Script, SinkFactory
from tests.fakes.stuffing import stuffed_dots
from tests.fakes.worker import MemoryWorker

R = TypeVar("R")

DIRECTORY = Directory(frozenset({b"home.example"}), frozenset({b"joe", b"ann"}), b"joe")
CONTENT = b"Received: by test\r\n\r\nHello\r\n..dot\r\n"


def prompt_workers() -> MemoryWorker:
    """Workers that run each call at once, in the same thread."""
    return MemoryWorker(is_prompt=True)


class Hangs(Exception):
    """A file system does not answer."""


class Freezer(MemoryWorker):
    """Workers for which the maildirs of some users hang: they do at once what touches no such maildir, and the rest when it
    is thawed."""

    def __init__(self, patch: pytest.MonkeyPatch, *users: bytes) -> None:
        super().__init__(is_prompt=True)
        self.frozen = set(users)
        self.waiting: list[tuple[Callable[[], Any], Deferred[Any]]] = []

        def begin(store: MaildirStore, userpath: str, user: bytes, *rest: Any) -> Any:
            if user in self.frozen:
                raise Hangs
            return begin_delivery(store, userpath, user, *rest)

        patch.setattr("mailismus.deliver.local.deposit.begin_delivery", begin)

    def run(self, function: Callable[[], R]) -> Deferred[R]:
        done: Deferred[R] = Deferred()
        self._try(function, done)
        return done

    def _try(self, function: Callable[[], R], done: Deferred[R]) -> None:
        try:
            result = function()
        except Hangs:
            self.waiting.append((function, done))
        except Exception as error:
            done.errback(error)
        else:
            done.callback(result)

    def thaw(self, *users: bytes) -> None:
        """These answer again, or all."""
        self.frozen -= set(users) or set(self.frozen)
        waiting, self.waiting = self.waiting, []
        for function, done in waiting:
            self._try(function, done)


UNKNOWN = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.3", b"no such name here"), b"none")


class Names:
    """Look-ups that the test answers: see `locator.HostLookup` and `MxLookup`. What is not known is trouble; a Deferred is
    handed out as it is, and is for the test to fire."""

    def __init__(self) -> None:
        self.hosts: dict[str, tuple[str, ...] | Outcome | Deferred[tuple[str, ...] | Outcome]] = {}
        self.domains: dict[str, tuple[MxHost, ...] | Outcome | Deferred[tuple[MxHost, ...] | Outcome]] = {}
        self.cached: dict[str, Any] = {}
        """What is known without a look-up."""
        self.asked: list[str] = []

    def find(self, host: str) -> Deferred[tuple[str, ...] | Outcome]:
        self.asked.append(host)
        found = self.hosts.get(host, UNKNOWN)
        return found if isinstance(found, Deferred) else succeed(found)

    def locate(self, domain: str) -> Deferred[tuple[MxHost, ...] | Outcome]:
        self.asked.append(domain)
        found = self.domains.get(domain, UNKNOWN)
        return found if isinstance(found, Deferred) else succeed(found)

    def known(self, name: str) -> Any:
        return self.cached.get(name)

    def mx(self, domain: str, *hosts: tuple[int, str, str]) -> None:
        """The MX hosts of a domain: preference, name, addresses with blanks between."""
        self.domains[domain] = tuple(MxHost(name, preference, tuple(text.split())) for preference, name, text in hosts)


class World:
    """See `task.DeliveryContext`."""

    def __init__(self, clock: Clock | None = None, network: Network | None = None) -> None:
        """`clock`, `network`: those that several servers share."""
        self.clock = clock or Clock()
        if clock is None:
            self.clock.advance(1_700_000_000.0)
        self.tcp: Any = network or Network(self.clock)
        self.jumped_s = 0.0
        """How far the wall clock has jumped, as against the monotonic one."""
        self.monotonic: Callable[[], float] = lambda: float(self.clock.seconds()) - self.jumped_s
        self.local_workers: Any = prompt_workers()
        self.secret_workers: Any = MemoryWorker(is_prompt=True)
        self.pick: PickOne = lambda hosts: hosts[0]
        self.chance: Callable[[], float] = lambda: 0.0

    def jump(self, seconds: float) -> None:
        """The time of day does; timers do not, and neither does the monotonic clock."""
        self.clock.rightNow += seconds
        for call in self.clock.calls:
            call.time += seconds
        self.jumped_s += seconds


def relay(address: str, port: int = 25, *destdomains: bytes) -> RelaySettings:
    """A relay rule; without `destdomains` the default relay."""
    return RelaySettings(f"{address}:{port}", address, port, destdomains, (), None, 1)


def deliver_settings(*relays: RelaySettings, **changes: Any) -> DeliverSettings:
    """The defaults, with changes; `client_` before a name: one of `<client>`."""
    client: dict[str, Any] = {
        "timeout_s": 300.0,
        "timeout_connect_s": 30.0,
        "timeout_final_s": 600.0,
        "maxpipeline": 25,
        "fallback_a": True,
        "eightbit": EightBit.SEND,
        "mxport": 25,
        "loopback": False,
        "tls": TlsSettings(TlsLevel.OPPORTUNISTIC),
    }
    whole: dict[str, Any] = {
        "queuecache": 2500,
        "maxconnections": 2500,
        "maxserverconnections": 20,
        "maxmessages": 100,
        "maxrecips": 50,
        "messages_per_minute": 0,
        "recipients_per_minute": 0,
        "destinations": (),
        "schedule": ScheduleSettings(20, 10, 3, 5.0, 300.0, 300.0, 7200.0, 7200.0),
        "interval_low_s": 0.1,
        "interval_high_s": 15.0,
        "interval_error_s": 180.0,
        "delay_start_s": 0.0,
    }
    for name, value in changes.items():
        if name.startswith("client_"):
            client[name.removeprefix("client_")] = value
        else:
            whole[name] = value
    return DeliverSettings(relays=relays, client=ClientSettings(**client), dns=DnsSettings((), 5.0, False), **whole)


class Bench:
    """A delivering task with everything around it."""

    def __init__(
        self,
        *relays: RelaySettings,
        store: str = "/nonexistent",
        large_bytes: int = 1 << 17,
        delays_s: tuple[float, ...] = (900.0, 1800.0, 7200.0, 14400.0),
        has_relay: bool = True,
        users: tuple[bytes, ...] = (b"joe", b"ann"),
        workers: MemoryWorker | None = None,
        lmtp: LmtpSettings | None = None,
        world: World | None = None,
        limits: ILimits | None = None,
        **changes: Any,
    ) -> None:
        self.world = world or World()
        self.world.local_workers = workers or prompt_workers()
        self.clock: Clock = self.world.clock
        self.network: Network = self.world.tcp
        self.maillog = MemoryMailLog()
        self.provider = MemoryQueue(self.clock, large_bytes=large_bytes)
        self.names = Names()
        self.store = MessageStoreSettings(store, "Maildir", lmtp)
        retry = RetrySettings(72 * 3600.0, 24 * 3600.0, delays_s)
        self.queue = QueueManager(self.provider, retry, self.clock, self.world.monotonic, self.maillog)
        self.task = DeliverTask(
            deliver_settings(*(relays or (relay("192.0.2.1"),) * has_relay), **changes),
            self.store,
            attrs.evolve(DIRECTORY, users=frozenset(users)),
            b"mx.example",
            self.queue,
            self.maillog,
            self.world,
            Locator(self.names, self.names),
            Deaths.within(delays_s),
            limits=limits,
        )
        self.queue.on_flush(self.task.forget_deaths, self.task.forget_deaths_of)
        self.queue.on_jump(self.task.clock_jumped)
        self.queue.on_explain(self.task.explanations)

    def sink(self, script: Script | None = None, host: str = "192.0.2.1", port: int = 25) -> SinkFactory:
        """A sink that listens."""
        factory = SinkFactory(script)
        self.network.servers[host, port] = factory
        return factory

    def put(self, *recipients: bytes, content: bytes = CONTENT, sender: bytes = b"s@a.example") -> None:
        """A message into the queue."""
        draft = self.queue.draft()
        draft.write(content)
        accept(
            self.queue,
            draft,
            Envelope(sender, recipients, eightbit=not content.isascii(), stuffed_dots=stuffed_dots(content)),
        )

    def run(self, seconds: float = 1.0, step_s: float = 0.05) -> None:
        """Let this time pass, with as many turns as things need."""
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until:
            for _ in range(40):
                self.clock.advance(0)
            self.clock.advance(step_s)
        for _ in range(40):
            self.clock.advance(0)

    def lines(self, *words: bytes) -> list[bytes]:
        """Lines of the mail log that tell an outcome and hold all these words."""
        return [line for line in self.maillog.lines if b"status=" in line and all(word in line for word in words)]

    def statuses(self) -> dict[str, int]:
        """How many lines tell each status."""
        found: dict[str, int] = {}
        for line in self.lines():
            status = line.partition(b"status=")[2].partition(b" ")[0].decode()
            found[status] = found.get(status, 0) + 1
        return found

    def why(self) -> dict[str, Waiting]:
        """Why each entry waits, by its queue id."""
        found: dict[str, Waiting] = {}

        def explain(page: Page) -> None:
            for queue_id, waiting in self.queue.explanations().of(page.messages, is_brief=False).items():
                found[str(queue_id)] = waiting

        self.queue.search(Filter(), None, 10_000).addCallback(explain)
        return found

    def count(self, area: Area) -> int:
        """Entries in an area."""
        found: list[int] = []
        self.queue.summary().addCallback(lambda summary: found.append(summary.areas[area].entries))
        self.run(0.1)
        return found[0]


def files_of(store: str, user: str, folder: str = "new") -> list[str]:
    """Paths of what lies in a user's maildir."""
    path = os.path.join(store, user, "Maildir", folder)
    return [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else []


def stopped(bench: Bench, after_s: float) -> list[float]:
    """Asks for a stop `after_s` from now at the latest; gives a list that gets the moment it was over."""
    over: list[float] = []
    start = bench.clock.seconds()
    bench.task.stop(bench.world.monotonic() + after_s).addCallback(lambda _: over.append(bench.clock.seconds() - start))
    return over
