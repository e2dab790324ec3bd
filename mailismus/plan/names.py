"""Names and workers of the simulation: look-ups and maildirs that take their time on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeVar

from twisted.internet.defer import Deferred, succeed

from mailismus.dns.mx import MxHost
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.plan.clock import VirtualClock
from mailismus.plan.site import ReceivingSite

LOOKUP_S = 0.03
TIMEOUT_S, TIMEOUTS = 5.0, 4
"""A look-up without an answer ends after so many time-outs, while others wait after the next one."""
TTL_S = 3600.0
SILENT_TTL_S = 5.0
NOT_NOW = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.3", b"name servers do not answer"), b"none")

Found = tuple[MxHost, ...] | Outcome
T = TypeVar("T")


class SimulatedNames:
    """The name servers: see `locator.MxLookup`. `site_of`: the site of a domain; None: nobody answers."""

    def __init__(self, clock: VirtualClock, site_of: Callable[[str], ReceivingSite | None]) -> None:
        self._clock, self._site_of = clock, site_of
        self._cache: dict[str, tuple[float, Found]] = {}
        self._is_pressed = False

    def press(self, is_pressed: bool) -> None:
        """Note whether look-ups wait until others end."""
        self._is_pressed = is_pressed

    def known(self, domain: str) -> Found | None:
        """What the cache tells."""
        cached = self._cache.get(domain)
        return cached[1] if cached is not None and cached[0] > self._clock.now else None

    def locate(self, domain: str) -> Deferred[Found]:
        """The hosts of a domain."""
        cached = self.known(domain)
        if cached is not None:
            return succeed(cached)
        site, done = self._site_of(domain), Deferred[Found]()
        if site is not None:
            self._clock.at(self._clock.now + LOOKUP_S, self._answer, (domain, site, done))
        else:
            self._clock.at(self._clock.now + TIMEOUT_S, self._time_out, (domain, 1, done))
        return done

    def _time_out(self, asked: tuple[str, int, Deferred[Found]]) -> None:
        domain, count, done = asked
        if self._is_pressed or count == TIMEOUTS:
            self._answer((domain, None, done))
        else:
            self._clock.at(self._clock.now + TIMEOUT_S, self._time_out, (domain, count + 1, done))

    def _answer(self, asked: tuple[str, ReceivingSite | None, Deferred[Found]]) -> None:
        domain, site, done = asked
        found: Found = NOT_NOW if site is None else site.hosts
        self._cache[domain] = (self._clock.now + (SILENT_TTL_S if site is None else TTL_S), found)
        done.callback(found)


class RelayNames:
    """The look-ups of relays: known at once. `addresses_of`: those of a host."""

    def __init__(self, addresses_of: Callable[[str], tuple[str, ...]]) -> None:
        self._addresses_of = addresses_of

    def known(self, host: str) -> tuple[str, ...] | Outcome | None:
        """Its addresses."""
        return self._addresses_of(host)

    def find(self, host: str) -> Deferred[tuple[str, ...] | Outcome]:
        """The same."""
        return succeed(self._addresses_of(host))


class Maildirs:
    """The threads of local deliveries, as `IWorker`: nothing is written, and each call takes `takes_s`."""

    def __init__(self, clock: VirtualClock, takes_s: float, threads: int) -> None:
        self._clock, self._takes_s = clock, takes_s
        self._free_at = [0.0] * threads

    def start(self) -> None:
        """See `IWorker`."""

    def stop(self) -> None:
        """See `IWorker`."""

    def leave(self) -> None:
        """See `IWorker`."""

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        """Let time pass in place of the call."""
        done: Deferred[T] = Deferred()
        ends_at = max(heappop(self._free_at), self._clock.now) + self._takes_s
        heappush(self._free_at, ends_at)
        self._clock.at(ends_at, done.callback, None)
        return done
