"""The pool of workers: how many there are, how many are free, and whether a message may have one more. Pure.

*Rules*
- A message may have one more worker while it has fewer than its share (seed 001).
- A message is *small* if it has too few recipients ever to exceed that share. For its small messages a sender has the share
  of one message: a thousand messages of one recipient are no better than one to a thousand. They leave some workers to
  senders with few.
- A worker is that sender's for whose small message the connection was made, or used again after it was idle. Other jobs may
  ride on it: to count the workers of each sender with each job would cost more than it tells.
"""

from __future__ import annotations

from mailismus.deliver.jobs.concurrency import Concurrency
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import ScheduleLimits

KEPT = 5
"""One worker in so many is kept for senders with few, `MOST_KEPT` at most."""
MOST_KEPT = 20
PARTS = 4
"""A sender has few while it has less than one part in so many of those, or none."""


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
        self.by_sender: dict[bytes, int] = {}
        """Active connections that were made, or used again, for small messages of each sender."""

    def opened(self) -> None:
        """Count a connection that is being made."""
        self.open += 1

    def closed(self) -> None:
        """Stop counting a connection that has left and is closed."""
        self.open -= 1
        self.leaving -= 1

    def left(self, connection: Connection) -> None:
        """Count a connection that takes no more jobs: it will be closed."""
        self.leaving += 1
        if connection.sender is not None:
            self._uncharge(connection, connection.sender)

    def charge(self, connection: Connection, job: Job) -> None:
        """Count a connection that was made, or used again, for this job, as one of its sender."""
        if job.concurrency is None or self.is_small(job):  # the usual case first
            sender = job.message.sender
            connection.charge(sender)
            self.by_sender[sender] = self.by_sender.get(sender, 0) + 1

    def _uncharge(self, connection: Connection, sender: bytes) -> None:
        left = self.by_sender[sender] - 1
        if left:
            self.by_sender[sender] = left
        else:
            del self.by_sender[sender]
        connection.charge(None)

    def rested(self, connection: Connection) -> None:
        """Add a connection that became idle."""
        self.idle[connection] = None
        if connection.sender is not None:
            self._uncharge(connection, connection.sender)

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

    def is_small(self, job: Job) -> bool:
        """Whether the message of a job has too few recipients ever to exceed its share."""
        concurrency, limits = job.concurrency, self._limits
        if concurrency is None:
            return True
        return concurrency.share is None and job.message.recipient_count <= limits.always(limits.share)

    def allows_job(self, job: Job) -> bool:
        """Whether a job may have one more worker: what its message may have, and if that is small, its sender."""
        return self.allows_message(job.concurrency) and (not self.is_small(job) or self.allows_sender(job.message.sender))

    def allows_sender(self, sender: bytes) -> bool:
        """Whether the small messages of a sender may have one more worker."""
        limits, count = self._limits, self.of_sender(sender)
        kept, free = self._kept, self.free
        if free <= kept:
            return count < max(1, kept // PARTS)
        return count < limits.always(limits.share) or count < limits.share.scale * free

    @property
    def _kept(self) -> int:
        """Workers that are for senders with few."""
        return min(MOST_KEPT, self._limits.max_connections // KEPT)

    def of_sender(self, sender: bytes) -> int:
        """Workers that the small messages of a sender have."""
        return self.by_sender.get(sender, 0)

    def allows_message(self, concurrency: Concurrency | None) -> bool:
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
