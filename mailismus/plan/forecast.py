"""Forecast: what a simulated run tells, as values (pure). Times are UTC seconds."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

TRACED = 50
"""Entries whose attempts are told one by one, if no more are asked about."""
TRACED_ATTEMPTS = 20


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value of ascending ones that this share of them does not exceed; None: there are none."""
    return values[min(len(values) - 1, max(0, -int(-share * len(values) // 1) - 1))] if values else None


@attrs.frozen
class HopForecast:
    """What becomes of the entries of one next hop."""

    name: str
    entries: int
    delivered: int
    bounced: int
    expired: int
    half_at: float | None
    """When half of those were delivered that are delivered in time; None: none is."""
    most_at: float | None
    """When 95 % of them were."""
    gone_at: float | None
    """When the last entry has left; None: some are still there at the end."""
    later_at: float | None
    """When they will have left at the pace of the last quarter of the time; None: nothing moved, or none is left."""
    attempts: int
    reasons: tuple[str, ...] = ()
    """What limits its hosts, and the last reply of those that wait."""

    @property
    def left(self) -> int:
        """Entries that are still there at the end."""
        return self.entries - self.delivered - self.bounced - self.expired


@attrs.frozen
class ForecastAttempt:
    """One attempt of an entry that is traced."""

    at: float
    status: str
    reply: str


@attrs.frozen
class EntryForecast:
    """What becomes of one entry."""

    queue_id: str
    recipient: str
    next_hop: str
    attempts: tuple[ForecastAttempt, ...]
    next_at: float | None
    """When it is due at the end of the time; None: it has left."""


@attrs.frozen
class Forecast:
    """The result of one run."""

    begins_at: float
    until: float
    """How far was asked for."""
    ends_at: float
    """How far the simulation went: until, the moment when everything had left, or where processor time was over."""
    is_cut: bool
    """Processor time was over."""
    hops: tuple[HopForecast, ...]
    """Those with most left first."""
    whole: HopForecast
    entries: tuple[EntryForecast, ...] = ()
    left_out: int = 0
    held: int = 0
    failed: int = 0
    """Entries that wait for their report."""
    took_s: float = 0.0
