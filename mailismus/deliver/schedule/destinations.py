"""The destinations in use, and those without entries whose hosts are still known. Pure."""

from __future__ import annotations

from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.destination import Destination

MAX_UNUSED = 10_000
"""Destinations without entries whose hosts are known; the earliest are forgotten first."""


class KnownDestinations:
    """One destination for each next hop. `limits_of`: whose limits they hold; `max_unused`: kept without entries."""

    def __init__(self, limits_of: LimitsOf, max_unused: int = MAX_UNUSED) -> None:
        self._limits_of, self._max_unused = limits_of, max_unused
        self.by_next_hop: dict[NextHop, Destination] = {}
        self._unused: dict[Destination, None] = {}
        """Those that had no entries left, the earliest first."""

    @property
    def has_unused(self) -> bool:
        """Whether there are some to be forgotten."""
        return bool(self._unused)

    def of(self, next_hop: NextHop) -> Destination:
        """The destination of a next hop; makes it if needed."""
        found = self.by_next_hop.get(next_hop)
        if found is None:
            found = self.by_next_hop[next_hop] = Destination(next_hop)
        return found

    def forget_if_unused(self, destination: Destination) -> None:
        """Forget one without entries when its hosts would have to be looked up again; `of` makes it anew."""
        if not destination.entries:
            self._unused[destination] = None

    def collect(self, now: float) -> None:
        """Forget those without entries whose hosts are not known any more."""
        for destination in list(self._unused):
            if destination.located_until > now and len(self._unused) <= self._max_unused:
                break
            del self._unused[destination]
            if not destination.entries and not destination.is_locating:
                del self.by_next_hop[destination.next_hop]
                if destination.limits is not None:
                    self._limits_of.release(destination.limits, now)
