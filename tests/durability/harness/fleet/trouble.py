"""The kinds of trouble that a server of the fleet gets into, and what may come twice by one (pure).

*Rule*: what a server had on the wire may come twice, and what it had been answered a moment before; of one that is cut off
also what it begins until it is no longer sure of its lease. What a clean stop doubles, or a flush, or a server that was
thawed and begins something anew, has no excuse.
"""

from __future__ import annotations

import enum

import attrs

from benchmarks.results.verdict import BEFORE_KILL_S
from mailismus.queue.providers.distributed.identity.lease import SURE_S

HELD_S = 2.0
"""So long the next hop of a server that is frozen or cut off stood still before: jobs wait in memory then."""
NOTICED_S = 1.5
"""What was on the wire is read by the next hop within so many seconds, once that goes on."""


class Kind(enum.Enum):
    """A kind of trouble."""

    KILL = "kill -9"
    """The server is started again at once."""
    HEIR = "kill -9, down"
    """It stays down until the others have delivered all that it had."""
    FREEZE = "SIGSTOP"
    CUT = "cut"
    TERM = "SIGTERM"
    FLUSH = "flush"
    """No trouble, but a flush by its own command of what both servers have on the wire for long."""
    SERVICE = "service"
    """A service is in trouble, and so all servers are."""


@attrs.frozen
class Trouble:
    """One trouble, by the machine's monotonic clock."""

    kind: Kind
    victim: str
    """A server; empty: all of them."""
    began_s: float
    ended_s: float
    """The victim was started again, thawed, or connected."""
    well_s: float = 0.0
    """It has taken mail again."""
    what: str = ""
    """What was cut, or the service and what was done to it, in words."""
    settled_s: float = BEFORE_KILL_S
    """What was answered longer before its begin can't come again."""

    def excuses(self, server: str, begun_s: float, at_s: float) -> bool:
        """Whether a copy that this server sent then may be one of two."""
        if self.victim not in ("", server) or at_s < self.began_s - self.settled_s:
            return False
        match self.kind:
            case Kind.TERM | Kind.FLUSH:
                return False
            case Kind.KILL | Kind.HEIR | Kind.FREEZE:
                return begun_s <= self.began_s + NOTICED_S
            case Kind.SERVICE:
                return begun_s <= self.ended_s + NOTICED_S
            case Kind.CUT:
                return begun_s <= min(self.began_s + SURE_S, self.ended_s) + NOTICED_S
