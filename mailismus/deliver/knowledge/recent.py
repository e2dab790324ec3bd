"""Recent outcomes: totals and habits of each next hop, and the last failures (pure).

*Rules*: memory is bounded: `MAX_HOPS` next hops, of which those in use are kept, and `MAX_FAILURES` failures. A delivery
costs a look into a dict, and some additions.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from mailismus.deliver.knowledge.hop_habits import SeenHop
from mailismus.deliver.knowledge.in_use import InUse
from mailismus.deliver.routes.route import NextHop
from mailismus.observe.habits import MAX_HOPS
from mailismus.observe.overview import MAX_FAILURES
from mailismus.queue.outcome.disposition import Disposition


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
    """Totals of one next hop since it came into use, its last failure, and what was seen of it."""

    __slots__ = ("deferred", "delivered", "failed", "habits", "host", "is_used", "last")

    def __init__(self) -> None:
        self.delivered = self.deferred = self.failed = 0
        """Recipients by outcome."""
        self.last: FailureNote | None = None
        self.host = b""
        """The host of the last failure that had one, as it is logged."""
        self.habits = SeenHop()
        self.is_used = False

    def take_turn(self) -> None:
        """See `in_use.Usable`."""
        self.is_used = False

    def add_delivered(self, count: int) -> None:
        """Add recipients that have their mail."""
        self.delivered += count
        self.is_used = True

    def add_failed(self, note: FailureNote) -> None:
        """Add the recipients of a failed attempt."""
        if note.disposition is Disposition.DEFERRED:
            self.deferred += note.recipients
        else:
            self.failed += note.recipients
        self.last = note
        if b"[" in note.host:
            self.host = note.host
        self.is_used = True


class RecentOutcomes:
    """The totals of all next hops in use, and the last failures. `max_hops`: the bound of its memory."""

    def __init__(self, max_hops: int = MAX_HOPS) -> None:
        self.of_hop: InUse[NextHop, HopTotals] = InUse(HopTotals, max_hops)
        self.failures: deque[FailureNote] = deque(maxlen=MAX_FAILURES)
        """The newest last."""

    def note_failed(self, note: FailureNote) -> None:
        """Note an attempt that did not deliver."""
        self.of_hop[note.next_hop].add_failed(note)
        self.failures.append(note)
