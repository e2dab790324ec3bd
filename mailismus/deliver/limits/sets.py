"""Limits by destination: one window for each MX set, one rate for each MX set or `<destination>` (pure).

*An MX set* is the host names of a next hop and their port; all domains with the same hosts share it. *A rate* belongs
to the MX set; a `<destination>` of the configuration that has a rate of its own has one for all of its domains,
whatever their hosts. A window is always that of the MX set: it follows what the hosts say.

*A start, or the end of an outage*: many sets begin in one moment then, and networks and name servers would get all at once.
So of the sets that begin in the first second, or anew, `AT_ONCE` begin at once, and each other one after a random part of
`SPREAD_S`.

*Memory*: an MX set is kept while a next hop holds it, and `KEEP_S` longer, so that a short pause of the mail neither
forgets a cut nor lets a second minute's mail go. `MAX_SETS` at most are kept, the ones unused longest go first; only
those that have sent under a rate of their own within the last minute stay beyond that.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from mailismus.config.values.settings import DeliverSettings, DestinationSettings
from mailismus.deliver.limits.domains import Destinations
from mailismus.deliver.limits.parts import SharedLimits, SharedMeters
from mailismus.deliver.limits.rate import SPAN_S, Rate
from mailismus.deliver.limits.window import Window
from mailismus.observe.habits import WindowState

KEEP_S = 600.0
MAX_SETS = 10_000
START_S = 1.0
"""How long a start lasts: from its first set on."""
AT_ONCE = 100
"""Sets that begin at once at a start, or after an outage."""
SPREAD_S = 3.0
"""Seconds within which the others begin."""

SetKey = tuple[tuple[str, ...], int]
"""Host names, sorted, and the port."""


def key_of(hosts: Sequence[str], port: int) -> SetKey:
    """The key of an MX set, whatever the order of its hosts."""
    return tuple(sorted(set(hosts))), port


class MxSet:
    """What is known of the hosts of one next hop together. `rate` None: no rate of its own is in force."""

    __slots__ = ("connections", "holders", "key", "moved_at", "rate", "standing", "window")

    def __init__(self, key: SetKey, window: Window, rate: Rate | None) -> None:
        self.key = key
        self.window = window
        self.rate = rate
        self.holders = 0
        """Next hops that hold it."""
        self.connections = 0
        """Connections made for it that do not leave."""
        self.standing = 0
        """Of these, those with a session."""
        self.moved_at = -math.inf
        """When a message was accepted, or the first connection was made."""

    def connected(self, now: float) -> None:
        """Count a connection that is being made."""
        if not self.connections:
            self.moved_at = now
        self.connections += 1

    def stands(self) -> None:
        """Count a session that stands."""
        self.standing += 1

    def left(self, *, was_standing: bool) -> None:
        """Stop counting a connection that leaves."""
        self.connections -= 1
        self.standing -= was_standing

    def note_delivered(self, now: float) -> bool:
        """Note that a message was accepted. Whether the window grew."""
        self.moved_at = now
        window, standing = self.window, self.standing
        return standing >= window.size and window.note_delivered(standing)

    def note_silence(self, now: float, patience_s: float) -> bool:
        """Let the window lend a connection if no message was accepted for so long. Whether it did."""
        return now - self.moved_at >= patience_s and self.window.lend(now)

    def add_holder(self, number: int) -> None:
        """Count one holder more or less."""
        self.holders += number

    def use_rate(self, rate: Rate | None) -> None:
        """Take over another rate."""
        self.rate = rate


class DestinationLimits:
    """The limits of one next hop: of its domain, or of the `<destination>` with these patterns for mail through a relay. It
    follows a reload by itself.

    `window`: connections to the MX set. `rate`: None if no rate is in force. `server_limit`: connections to one host at
    most for the mail of this domain; None: no limit. `scope`: the patterns of the `<destination>` that says so; empty: none
    does. `destination`: the `<destination>` of the domain."""

    __slots__ = ("destination", "domain", "mx_set", "patterns", "rate", "scope", "server_limit", "window")

    def __init__(self, domain: bytes, mx_set: MxSet, patterns: tuple[bytes, ...] = ()) -> None:
        self.domain, self.patterns = domain, patterns
        self.mx_set = mx_set
        self.window = mx_set.window
        self.rate: Rate | None = None
        self.server_limit: int | None = None
        self.scope = b""
        self.destination: DestinationSettings | None = None

    def follow(
        self, destination: DestinationSettings | None, rate: Rate | None, server_limit: int | None, scope: bytes
    ) -> None:
        """Take over what the configuration says now."""
        self.destination, self.rate, self.server_limit, self.scope = destination, rate, server_limit, scope


class LimitsOf:
    """The limits of all destinations."""

    def __init__(
        self, settings: DeliverSettings, chance: Callable[[], float] = lambda: 0.0, shared: SharedLimits | None = None
    ) -> None:
        """`chance`: a random number from 0 to 1, for each window's pauses. `shared`: rates hold over all servers."""
        self._chance, self._shared = chance, shared
        self._sets: dict[SetKey, MxSet] = {}
        self._unused: OrderedDict[MxSet, float] = OrderedDict()
        """Those that nothing holds, and since when, in that order."""
        self._held: dict[DestinationLimits, None] = {}
        self._rates: dict[tuple[bytes, ...], Rate] = {}
        """Of destinations with a rate of their own, by their patterns."""
        self._starts_until: float | None = None
        """None: no set has begun yet."""
        self._settings = settings
        self._destinations = Destinations(settings.destinations)
        self._use_rates()

    @property
    def has_rates(self) -> bool:
        """Whether any rate is in force."""
        settings = self._settings
        return bool(settings.messages_per_minute or settings.recipients_per_minute or self._rates)

    def __len__(self) -> int:
        """Number of MX sets that are kept."""
        return len(self._sets)

    def hold(
        self, domain: bytes, hosts: Sequence[str], port: int, patterns: tuple[bytes, ...] = (), *, now: float = 0.0
    ) -> DestinationLimits:
        """The limits of this domain's mail at these hosts, kept until `release`. `domain` empty: of mail through a relay for
        the domains of the `<destination>` with these `patterns`, or of no `<destination>`."""
        key = key_of(hosts, port)
        mx_set = self._sets.get(key)
        if mx_set is None:
            mx_set = self._sets[key] = MxSet(key, Window(None, self._chance()), self._new_rate(key))
            if self._starts_until is None:
                self._starts_until = now + START_S
            if now < self._starts_until and len(self._sets) > AT_ONCE:
                mx_set.window.begin_anew(now, SPREAD_S * self._chance())
        self._unused.pop(mx_set, None)
        mx_set.add_holder(1)
        limits = DestinationLimits(domain, mx_set, patterns)
        self._held[limits] = None
        self._resolve(limits)
        return limits

    def release(self, limits: DestinationLimits, now: float) -> None:
        """End one `hold`."""
        del self._held[limits]
        mx_set = limits.mx_set
        mx_set.add_holder(-1)
        if mx_set.holders:
            return
        self._unused[mx_set] = now
        if len(self._sets) > MAX_SETS:
            self._forget_excess(now)

    def forget_unused(self, now: float) -> int:
        """Forget the MX sets that nothing has held for `KEEP_S`. Return their number."""
        count = 0
        while self._unused and next(iter(self._unused.values())) + KEEP_S <= now:
            self._forget_oldest()
            count += 1
        return count

    def begin_anew(self, now: float) -> None:
        """Begin the windows without a session with 1 again, after an outage of this host's own network."""
        for number, mx_set in enumerate([one for one in self._sets.values() if not one.standing]):
            mx_set.window.begin_anew(now, 0.0 if number < AT_ONCE else SPREAD_S * self._chance())

    def use(self, settings: DeliverSettings) -> None:
        """Take over other settings. What was sent in the last minute counts against the new rates; a destination is the
        same if its patterns are."""
        self._settings = settings
        self._destinations = Destinations(settings.destinations)
        self._use_rates()
        messages, recipients = settings.messages_per_minute, settings.recipients_per_minute
        for mx_set in self._sets.values():
            mx_set.use_rate(_renewed(mx_set.rate, messages, recipients, self._meters_of(mx_set.key)))
        for limits in self._held:
            self._resolve(limits)

    def windows(self, now: float) -> Iterator[tuple[SetKey, WindowState]]:
        """The states of the windows that are cut or have grown; the caller may go on in later turns."""
        for mx_set in list(self._sets.values()):
            if mx_set.window.is_cut or mx_set.window.size > 1:
                yield mx_set.key, mx_set.window.state(now)

    def adopt(self, key: SetKey, state: WindowState, now: float) -> None:
        """Begin with the window of another process, of a set that is not known here."""
        if key not in self._sets:
            mx_set = self._sets[key] = MxSet(key, Window(None, self._chance()), self._new_rate(key))
            mx_set.window.restore(state, now)
            self._unused[mx_set] = now

    # Internal

    def _new_rate(self, key: SetKey) -> Rate | None:
        settings = self._settings
        return _renewed(None, settings.messages_per_minute, settings.recipients_per_minute, self._meters_of(key))

    def _meters_of(self, key: SetKey) -> SharedMeters | None:
        """What makes the meters of an MX set over all servers; None: they are of this one."""
        names, port = key
        return SharedMeters(self._shared, f"{','.join(names)} {port}") if self._shared is not None and port else None

    def _meters_for(self, patterns: tuple[bytes, ...]) -> SharedMeters | None:
        """The same, of a `<destination>`."""
        return None if self._shared is None else SharedMeters(self._shared, "to", b",".join(patterns))

    def _use_rates(self) -> None:
        rates = {}
        for destination in self._destinations:
            limits, patterns = _rates_of(destination, self._settings), destination.domains
            rate = None if limits is None else _renewed(self._rates.get(patterns), *limits, self._meters_for(patterns))
            if rate is not None:
                rates[patterns] = rate
        self._rates = rates

    def _resolve(self, limits: DestinationLimits) -> None:
        found = self._destinations
        destination = found.find(limits.domain) if limits.domain else found.of(limits.patterns)
        most, rate, scope = self._settings.maxserverconnections, limits.mx_set.rate, b""
        if destination is not None:
            if destination.maxserverconnections is not None:
                most, scope = destination.maxserverconnections, b",".join(destination.domains)
            if _rates_of(destination, self._settings) is not None:
                rate = self._rates.get(destination.domains)
        limits.follow(destination, rate, most or None, scope)

    def _forget_excess(self, now: float) -> None:
        while len(self._sets) > MAX_SETS and self._unused:
            mx_set, since = next(iter(self._unused.items()))
            if mx_set.rate is not None and since + SPAN_S > now:
                return  # nor may any that was released later
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        mx_set, _ = self._unused.popitem(last=False)
        del self._sets[mx_set.key]


def _rates_of(destination: DestinationSettings, settings: DeliverSettings) -> tuple[int, int] | None:
    """Messages and recipients a minute of a destination with a rate of its own, what it does not say being that of all;
    None: it has none of its own."""
    messages, recipients = destination.messages_per_minute, destination.recipients_per_minute
    if messages is None and recipients is None:
        return None
    return (
        settings.messages_per_minute if messages is None else messages,
        settings.recipients_per_minute if recipients is None else recipients,
    )


def _renewed(rate: Rate | None, messages: int, recipients: int, meters: SharedMeters | None) -> Rate | None:
    """The rate with these limits; None: there are none."""
    if not messages and not recipients:
        return None
    if rate is None:
        return Rate(messages, recipients, meters)
    rate.use_limits(messages, recipients)
    return rate
