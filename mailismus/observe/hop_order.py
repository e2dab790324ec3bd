"""The order of next hops, for screens (pure)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping

from mailismus.observe.figures import HopRow


class HopOrder(enum.Enum):
    """The order of next hops, the most first; of names, the first of the alphabet first."""

    HELD = "in hand"
    WAITS = "waits"
    SENT = "sent"
    FAILING = "failing"
    NAME = "name"


_KEYS: Mapping[HopOrder, Callable[[HopRow], tuple[float, ...]]] = {
    HopOrder.HELD: lambda row: (row.figures.entries, row.figures.waits_s),
    HopOrder.WAITS: lambda row: (row.figures.waits_s, row.figures.entries),
    HopOrder.SENT: lambda row: (row.delivered or 0.0, row.figures.delivered),
    HopOrder.FAILING: lambda row: ((row.deferred or 0.0) + (row.failed or 0.0), row.figures.deferred + row.figures.failed),
    HopOrder.NAME: lambda row: (),
}


def in_order(rows: Iterable[HopRow], order: HopOrder) -> list[HopRow]:
    """The rows in this order; equal ones by name."""
    found = sorted(rows, key=lambda row: row.figures.name)
    found.sort(key=_KEYS[order], reverse=order is not HopOrder.NAME)
    return found
