"""Ages: how old messages are, whatever the time of day did meanwhile (pure).

Arrival is written down as a time of day. When that jumps, the ages of messages that arrived in this run are known all the
same: spool ids are given out in order, so the newest id before a jump tells which messages are older than it. Of a message
of an earlier run nobody knows what the clock did since; its arrival is taken as written.

*Rules*: nothing is kept for a message, but for those that were arriving while the clock jumped; a few numbers for each
jump. Suspended time counts for how old a message is (`age_s`), and not for how long it could have been tried (`awake_s`).

*Not here*: that the clock jumped (`queue.clock.clockwatch`), when a message is too old (`queue.outcome.retry`).
"""

from __future__ import annotations

import attrs

from mailismus.mail.ids import SpoolId

MOST = 1000
"""Jumps that are remembered."""


@attrs.frozen
class Jump:
    """By how much the time of day moved against the monotonic clock, and by how much of that it was set; the rest is time
    that the machine was suspended. Seconds, forward positive."""

    jump_s: float
    step_s: float


class Ages:
    """Of all messages. `now`: UTC seconds as the clock says after the last jump that was told."""

    def __init__(self) -> None:
        self._first: SpoolId | None = None
        self._newest = SpoolId(0)
        self._jumps: list[tuple[SpoolId, Jump]] = []
        """With the newest id before each."""
        self.has_jumped = False
        """The clock did in this run."""
        self._forgotten = 0
        """How many jumps were before those."""
        self._late: dict[SpoolId, int] = {}
        """Messages whose arrival was written down behind a jump, though their id is from before it: how many jumps were
        before that."""

    def begun(self, spool_id: SpoolId) -> None:
        """This id was given out."""
        self._newest = spool_id
        if self._first is None:
            self._first = spool_id

    def arrived(self, spool_id: SpoolId) -> None:
        """The arrival of this message is written down now."""
        if self._jumps and spool_id <= self._jumps[-1][0]:
            self._late[spool_id] = self._forgotten + len(self._jumps)

    def jumped(self, jump: Jump) -> None:
        """The clock did, and is what it is from now on."""
        self.has_jumped = True
        self._jumps.append((self._newest, jump))
        if len(self._jumps) > MOST:
            del self._jumps[0]
            self._forgotten += 1
            self._late = {spool_id: count for spool_id, count in self._late.items() if count > self._forgotten}

    def arrived_at(self, spool_id: SpoolId, received_at: float) -> float:
        """When a message arrived that has this written down, told by the clock as it is now."""
        return received_at + self._since(spool_id).step_s if self.has_jumped else received_at

    def age_s(self, spool_id: SpoolId, received_at: float, now: float) -> float:
        """Seconds since it arrived; negative where a wrong clock of an earlier run wrote that down."""
        return now - self.arrived_at(spool_id, received_at)

    def awake_s(self, spool_id: SpoolId, received_at: float, now: float) -> float:
        """The same without the time that the machine was suspended."""
        return now - received_at - (self._since(spool_id).jump_s if self.has_jumped else 0.0)

    def _since(self, spool_id: SpoolId) -> Jump:
        """The jumps since the arrival of this message, together; none for one of an earlier run."""
        jump_s = step_s = 0.0
        if self._first is not None and spool_id >= self._first:
            left = len(self._jumps)
            late = max(0, self._late.get(spool_id, 0) - self._forgotten)
            while left > late and self._jumps[left - 1][0] >= spool_id:
                left -= 1
                jump_s += self._jumps[left][1].jump_s
                step_s += self._jumps[left][1].step_s
        return Jump(jump_s, step_s)
