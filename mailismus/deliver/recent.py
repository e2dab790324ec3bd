"""Recent outcomes: totals of each next hop, and the last failures (pure).

*Rules*: memory is bounded: `MAX_HOPS` next hops, of which the one that came first is forgotten for another, and
`MAX_FAILURES` failures. A delivery costs a look into a dict and an addition.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from mailismus.deliver.route import NextHop
from mailismus.observe.overview import MAX_FAILURES
from mailismus.queue.outcome.disposition import Disposition

MAX_HOPS = 1000


class FailureNote(NamedTuple):
    """A failed attempt as it was. `at`: monotonic seconds."""

    at: float
    disposition: Disposition
    next_hop: NextHop
    recipient: bytes
    """The first one."""
    recipients: int
    host: bytes
    reply: bytes


class HopTotals:
    """Totals of one next hop since it came into use, and its last failure."""

    __slots__ = ("deferred", "delivered", "failed", "last")

    def __init__(self) -> None:
        self.delivered = self.deferred = self.failed = 0
        """Recipients by outcome."""
        self.last: FailureNote | None = None

    def add_delivered(self, count: int) -> None:
        """Add recipients that have their mail."""
        self.delivered += count

    def add_failed(self, note: FailureNote) -> None:
        """Add the recipients of a failed attempt."""
        if note.disposition is Disposition.DEFERRED:
            self.deferred += note.recipients
        else:
            self.failed += note.recipients
        self.last = note


class RecentOutcomes:
    """The totals of all next hops in use, and the last failures. `max_hops`: the bound of its memory."""

    def __init__(self, max_hops: int = MAX_HOPS) -> None:
        self._max_hops = max_hops
        self.of_hop: dict[NextHop, HopTotals] = {}
        self.failures: deque[FailureNote] = deque(maxlen=MAX_FAILURES)
        """The newest last."""

    def note_delivered(self, next_hop: NextHop, count: int) -> None:
        """Note that so many recipients have their mail."""
        totals = self.of_hop.get(next_hop) or self._begin(next_hop)
        totals.add_delivered(count)

    def note_failed(self, note: FailureNote) -> None:
        """Note an attempt that did not deliver."""
        totals = self.of_hop.get(note.next_hop) or self._begin(note.next_hop)
        totals.add_failed(note)
        self.failures.append(note)

    def _begin(self, next_hop: NextHop) -> HopTotals:
        if len(self.of_hop) >= self._max_hops:
            del self.of_hop[next(iter(self.of_hop))]
        totals = self.of_hop[next_hop] = HopTotals()
        return totals
