"""Handing out: the next job of a connection, and the end of one (pure).

*Rules*
- A connection without jobs takes one that waits for its destinations, or one that has not begun on a connection that is
  slower or has more jobs.
- What waits for a rate is begun when the rate allows it, and counted then.
- A connection ends after its transaction if the message of its next job has more than its share, and another one waits; or
  if it has been there for `TURN_S` and mail for another host waits: a host with much mail of many messages, and slow, would
  keep its workers for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.schedule.choice import FRESH_AFTER
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.placing import Placing, may_send

LOOKED_AT = 8
"""Connections of one host that are looked at for a job to take over."""


TURN_S = 5.0
"""For how long a connection keeps its worker while mail for another host waits for one. Its set-up costs little of that."""


class HandingOut(Placing):
    """Jobs of connections that ask for one."""

    def next_job(self, connection: Connection, now: float) -> Job | None:
        """Take the next job to begin on this connection; None: there is none."""
        if not self._has_rates:
            queue = connection.queue
            if not queue:
                return self._next_job(connection, now)
            connection.host.queued -= 1
            connection.begun += 1
            return queue.popleft()
        while (job := self._next_job(connection, now)) is not None:
            destination = self.destinations[job.next_hop]
            if may_send(job, destination, now, is_sent=True):
                return job
            self.end_job(job, connection)
            self._park(job, destination)
        return None

    def _next_job(self, connection: Connection, now: float) -> Job | None:
        host = connection.host
        if connection.queue:
            return host.take_first(connection)
        if self._parked:
            for destination in self._parked.at(host):
                self._unpark(destination, now)
                if connection.queue:
                    return host.take_first(connection)
        if host.queued and not connection.jobs:
            self._take_over(connection)
            if connection.queue:
                return host.take_first(connection)
        return None

    def _take_over(self, connection: Connection) -> None:
        """Take a job that has not begun from the most crowded connection of the host, from one without room, or from one of
        the oldest."""
        host = connection.host
        full = host.most_crowded() or host.newest_below(self.limits.backlog + 1)
        for other in (*(() if full is None else (full,)), *host.oldest(LOOKED_AT)):
            if other.queue and other is not connection and other.queue[0].put_backs < FRESH_AFTER:
                job = other.queue[0]
                self._take_away(job, other)
                if job.concurrency is not None:
                    job.concurrency.add(connection)
                was_idle = connection.is_idle
                host.add_job(connection, job)
                if was_idle:  # it asks again after the queue allowed no transaction
                    self.pool.woke(connection)
                    self.pool.charge(connection, job)
                return

    def _take_away(self, job: Job, connection: Connection) -> None:
        """Take a job that has not begun from a connection."""
        connection.host.take_away(connection, job)
        self._remove_worker(job, connection)

    def _take_all(self, connection: Connection) -> Sequence[Job]:
        """Take all jobs that have not begun from a connection."""
        jobs = connection.host.take_all(connection)
        for job in jobs:
            if job.concurrency is not None:
                self._remove_worker(job, connection)
        return jobs

    def _remove_worker(self, job: Job, connection: Connection) -> None:
        concurrency = job.concurrency
        if concurrency is not None and concurrency.remove(connection) and concurrency.waiting:
            self._owner.want_service()

    def end_job(self, job: Job, connection: Connection) -> None:
        """Note that a job which had begun is settled, or put back. It is in no place now."""
        host = connection.host
        host.end_job(connection)
        if job.concurrency is not None:
            self._remove_worker(job, connection)
        if self._parked and host in self._parked:
            self._owner.want_service()

    def _is_for_others(self, job: Job, host: Host) -> bool:
        """Whether a job that waits in the line may have a worker, and not this host alone."""
        return host not in self.destinations[job.next_hop].labels and self.pool.allows_job(job)

    def must_yield(self, connection: Connection, now: float) -> bool:
        """Whether a connection ends after its transaction, so that its worker becomes free. Either the message of its next
        job has more than its share, and one with fewer workers waits in the line. Or that job is the only one of its
        message, the connection has had its turn, and mail for another host waits."""
        own = connection.queue[0].concurrency if connection.queue else None
        if own is None or not self.pool.exceeds(own):
            is_over = own is None and bool(connection.queue) and now - connection.made_at >= TURN_S
            return is_over and self.line.has(lambda job: self._is_for_others(job, connection.host))
        count = len(own.workers) - 1
        return self.line.has(lambda job: job.concurrency is None or len(job.concurrency.workers) < count)
