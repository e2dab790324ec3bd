"""The pool of workers: how many there are, how many are free, and whether a message may have one more. Pure."""

from __future__ import annotations

from mailismus.deliver.concurrency import Concurrency
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import ScheduleLimits


class Pool:
    """The connections of all hosts. An idle one is free: it can be closed."""

    def __init__(self, limits: ScheduleLimits) -> None:
        self._limits = limits
        self.open = 0
        """Connections that are not closed, those being made included."""
        self.leaving = 0
        """Of these, those that take no more jobs."""
        self.idle: dict[Connection, None] = {}
        """Of these, idle ones, in the order in which they became idle."""

    def opened(self) -> None:
        """Count a connection that is being made."""
        self.open += 1

    def closed(self) -> None:
        """Stop counting a connection that has left and is closed."""
        self.open -= 1
        self.leaving -= 1

    def left(self) -> None:
        """Count a connection that takes no more jobs: it will be closed."""
        self.leaving += 1

    def rested(self, connection: Connection) -> None:
        """Add a connection that became idle."""
        self.idle[connection] = None

    def woke(self, connection: Connection) -> None:
        """Remove a connection that is idle no more."""
        del self.idle[connection]

    @property
    def free(self) -> int:
        """Free workers."""
        return max(0, self._limits.max_connections - self.open) + len(self.idle)

    @property
    def soon_free(self) -> int:
        """Workers that are free when the connections that leave are closed, idle ones apart."""
        return max(0, self._limits.max_connections - self.open + self.leaving)

    @property
    def has_worker(self) -> bool:
        """Whether another connection may be made, perhaps after an idle one was closed."""
        return self.open < self._limits.max_connections or bool(self.idle)

    @property
    def is_full(self) -> bool:
        """Whether no connection may be made before another one is closed."""
        return self.open >= self._limits.max_connections

    def allows(self, concurrency: Concurrency | None) -> bool:
        """Whether a message may have one more worker (seed 001). None: it has no other job."""
        if concurrency is None:
            return True
        share, count = concurrency.share or self._limits.share, len(concurrency.workers)
        return count < self._limits.always(share) or count < share.scale * self.free

    def exceeds(self, concurrency: Concurrency) -> bool:
        """Whether a message has more than its share, even if one of its workers were free, and those of connections that
        leave."""
        share, count = concurrency.share or self._limits.share, len(concurrency.workers)
        return count >= self._limits.always(share) and count > share.scale * (self.free + self.leaving + 1)
