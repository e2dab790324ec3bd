"""Limits over all servers of a shared queue, as delivery uses them: connections to a host, and rates (pure).

*Rules*: a limit belongs to a host, or to a set of hosts, and to the `<destination>` that states it, if one does. What is
asked here is answered from memory; while nothing is known the answer is no, and the mail waits for the limit. A socket of
this machine is no other server's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Protocol
from weakref import ref

import attrs

from mailismus.deliver.limits.rate import SPAN_S, Meter
from mailismus.queue.limits import ILimitPart, ILimits

MAX_NAME = 200
"""Characters of a name; behind that a digest."""
MARGIN = 2
"""A transaction has so much less recipients than a server's part, as there are more servers soon."""


@attrs.frozen
class SharedLimits:
    """The limits of all servers, and the clock of rates."""

    limits: ILimits
    monotonic: Callable[[], float]


@attrs.frozen
class SharedMeters:
    """`rate.IMeters`. `of`: what the rate belongs to; `scope`: as for `name_of_limit`."""

    shared: SharedLimits
    of: str
    scope: bytes = b""

    def meter(self, limit: int, *, of_recipients: bool) -> Meter:
        name = name_of_limit("recipients" if of_recipients else "messages", self.of, self.scope)
        meter = SharedMeter(limit, name, self.shared.monotonic, is_even=not of_recipients)
        meter.share(self.shared.limits)
        return meter

    def most_recipients(self, limit: int) -> int:
        servers = self.shared.limits.servers
        return limit if servers == 1 or not limit else max(1, limit // (MARGIN * servers))


def name_of_limit(kind: str, of: str, scope: bytes = b"") -> str:
    """The name of a limit, the same on all servers. `scope`: the patterns of its `<destination>`."""
    name = " ".join((kind, of, scope.decode("ascii", "backslashreplace"))).rstrip()
    if len(name) <= MAX_NAME:
        return name
    return f"{name[:MAX_NAME]}... {hashlib.sha256(name.encode()).hexdigest()[:32]}"


class Counted(Protocol):
    """Something with connections."""

    connections: int


@attrs.frozen
class ConnectionUse:
    """The connections of one endpoint, as `ILimitUse`. It keeps no endpoint in memory."""

    name: str
    _of: ref[Counted]
    lasts_s: float = 0.0
    is_even: bool = False

    def used(self) -> int:
        of = self._of()
        return 0 if of is None else of.connections


class ConnectionParts:
    """The parts of one endpoint's limits: its own, and those of `<destination>`s."""

    __slots__ = ("_is_free", "_limits", "_name", "_of", "_parts")

    def __init__(self, limits: ILimits, name: str, of: Counted) -> None:
        self._limits, self._name, self._of = limits, name, ref(of)
        self._parts: dict[bytes, ILimitPart] = {}
        self._is_free = False
        """Whether some of its connections have no limit."""

    def allow(self, connections: int, most: int, scope: bytes, no_limit: int) -> bool:
        """Whether another connection may be made, by the part of a limit of so many."""
        self._is_free = most >= no_limit
        if self._is_free:
            return True
        part = self._parts.get(scope)
        if part is None:
            use = ConnectionUse(name_of_limit("connections", self._name, scope), self._of)
            part = self._parts[scope] = self._limits.part(use)
        if connections < part.ask(most):
            return True
        part.want()
        return False

    def surplus(self, connections: int) -> int:
        """Connections beyond the greatest of the parts."""
        if self._is_free or not self._parts:
            return 0
        return max(0, connections - max(part.allowed() for part in self._parts.values()))

    def others(self, scope: bytes) -> int:
        """Connections that other servers may have."""
        part = self._parts.get(scope)
        return 0 if part is None else part.others


class SharedMeter(Meter):
    """A limit of so many units in a minute over all servers: this one counts against its part."""

    __slots__ = ("_monotonic", "_part", "_whole", "is_even", "lasts_s", "name")

    _part: ILimitPart

    def __init__(self, limit: int, name: str, monotonic: Callable[[], float], *, is_even: bool) -> None:
        """It is used behind `share`."""
        super().__init__(limit)
        self.name, self._monotonic = name, monotonic
        self.lasts_s, self.is_even = SPAN_S, is_even

    def share(self, limits: ILimits) -> None:
        """Take a part of these limits."""
        self._part = limits.part(self)

    def use_limit(self, limit: int) -> None:
        """As `Meter.use_limit`, of the whole."""
        self._whole = limit
        super().use_limit(limit)

    def used(self) -> int:
        """What was sent in the last minute."""
        self._forget(self._monotonic())
        return self._counted

    @property
    def others(self) -> int:
        """What other servers may send in a minute."""
        return self._part.others

    def may_send(self, now: float, units: int) -> bool:
        part = self._part.ask(self._whole)
        if part and part != self._limit:
            super().use_limit(part)
        may_go = part > 0 and super().may_send(now, units) and self._counted + units <= part
        if not may_go and part < self._whole:
            self._part.want()
        return may_go
