"""Ages: the age of each message, corrected for jumps of the time of day (pure).

Arrival is stored as a time of day. If that jumps, the ages of messages of this run are known all the same: spool ids are
assigned in order, so the newest id before a jump tells which messages are older than it. For messages of an earlier run the
stored arrival is taken as it is: jumps of those runs are unknown.

*Rules*: no memory for each message, but for those that arrived during a jump; a few numbers for each jump. Suspended time
counts for the age of a message (`age_s`), but not for the time in which it could have been tried (`awake_s`).

*Not here*: noticing a jump (`queue.clock.clockwatch`), expiry (`queue.outcome.retry`).
"""

from __future__ import annotations

import attrs

from mailismus.mail.ids import SpoolId

MAX_JUMPS = 1000
"""Jumps that are remembered at most."""


@attrs.frozen
class Jump:
    """`jump_s`: how far the time of day moved against the monotonic clock; `step_s`: how far of that it was set. The rest is
    time in which the machine was suspended. Seconds, forward positive."""

    jump_s: float
    step_s: float


class Ages:
    """Ages of all messages. `now`: UTC seconds of the clock after the last jump."""

    def __init__(self) -> None:
        self._first: SpoolId | None = None
        self._newest = SpoolId(0)
        self._jumps: list[tuple[SpoolId, Jump]] = []
        """With the newest id before each."""
        self.has_jumped = False
        """The clock jumped in this run."""
        self._forgotten = 0
        """Number of jumps before those."""
        self._late: dict[SpoolId, int] = {}
        """Messages whose arrival was stored after a jump, though their id is older than it: number of jumps before that
        arrival."""

    def begun(self, spool_id: SpoolId) -> None:
        """Note that this id was assigned."""
        self._newest = spool_id
        if self._first is None:
            self._first = spool_id

    def arrived(self, spool_id: SpoolId) -> None:
        """Note that the arrival of this message is stored now."""
        if self._jumps and spool_id <= self._jumps[-1][0]:
            self._late[spool_id] = self._forgotten + len(self._jumps)

    def jumped(self, jump: Jump) -> None:
        """Note that the clock jumped."""
        self.has_jumped = True
        self._jumps.append((self._newest, jump))
        if len(self._jumps) > MAX_JUMPS:
            del self._jumps[0]
            self._forgotten += 1
            self._late = {spool_id: count for spool_id, count in self._late.items() if count > self._forgotten}

    def arrived_at(self, spool_id: SpoolId, received_at: float) -> float:
        """Return the arrival of a message by the present clock. `received_at`: its stored arrival."""
        return received_at + self._since(spool_id).step_s if self.has_jumped else received_at

    def age_s(self, spool_id: SpoolId, received_at: float, now: float) -> float:
        """Return the seconds since the arrival; negative if a wrong clock of an earlier run stored it."""
        return now - self.arrived_at(spool_id, received_at)

    def awake_s(self, spool_id: SpoolId, received_at: float, now: float) -> float:
        """Return the same without the time in which the machine was suspended."""
        return now - received_at - (self._since(spool_id).jump_s if self.has_jumped else 0.0)

    def _since(self, spool_id: SpoolId) -> Jump:
        """Return the sum of the jumps since the arrival of this message; zero for one of an earlier run."""
        jump_s = step_s = 0.0
        if self._first is not None and spool_id >= self._first:
            left = len(self._jumps)
            late = max(0, self._late.get(spool_id, 0) - self._forgotten)
            while left > late and self._jumps[left - 1][0] >= spool_id:
                left -= 1
                jump_s += self._jumps[left][1].jump_s
                step_s += self._jumps[left][1].step_s
        return Jump(jump_s, step_s)
