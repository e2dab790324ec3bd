"""Outcomes in doubt: outcomes that are known and not durable yet, and the gate that holds back further deliveries.

*Rules*: the gate is shut while `MAX_IN_DOUBT` outcomes are not durable. So deliveries do not run on while the disk stalls,
and a crash doubles no more deliveries than those. The gate decides nothing about settlements: these are never held back.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed

from mailismus.mail.ids import SpoolId

MAX_IN_DOUBT = 200
"""Outcomes that may be known and not durable at the same time."""


class OutcomeBatch:
    """Outcomes that are settled by one commit."""

    __slots__ = ("bounced", "count", "due_at")

    def __init__(self) -> None:
        self.count = 0
        self.due_at: float | None = None
        """When the first of the deferred entries becomes due."""
        self.bounced: list[tuple[SpoolId, int]] = []
        """Messages with several recipients, and how many of their entries failed."""

    def defer(self, due_at: float) -> None:
        """An entry is deferred until then."""
        if self.due_at is None or due_at < self.due_at:
            self.due_at = due_at


class OutcomeGate:
    """Counts outcomes in doubt. `count`: read only; after a crash now, so many deliveries would be made again."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[Deferred[None]] = []

    def when_open(self) -> Deferred[None]:
        """Fires when fewer than `MAX_IN_DOUBT` outcomes are in doubt: at once, or in the turn in which that becomes true."""
        if self.count < MAX_IN_DOUBT:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    def begin(self, count: int) -> None:
        """Count outcomes whose commit begins now."""
        self.count += count

    def end(self, count: int) -> None:
        """Count outcomes as durable, or as lost: their entries may be tried again."""
        self.count -= count
        if self._waiting and self.count < MAX_IN_DOUBT:
            waiting, self._waiting = self._waiting, []
            for deferred in waiting:
                deferred.callback(None)
