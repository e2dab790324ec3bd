"""The concurrency of a message: how many workers have a job of it, begun or queued. Pure.

A message that has one job only needs no such record: it has no worker before it gets its first one.
"""

from __future__ import annotations

import attrs

from mailismus.mail.ids import SpoolId


@attrs.frozen
class WorkerShare:
    """How many workers a message may have: `max_concurrency` always, more while it has fewer than `scale` times the free
    ones."""

    max_concurrency: int
    scale: int


class Concurrency:
    """The workers of one message. `share`: its own; None: that of all messages."""

    __slots__ = ("jobs", "share", "spool_id", "waiting", "workers")

    def __init__(self, spool_id: SpoolId, share: WorkerShare | None = None) -> None:
        self.spool_id = spool_id
        self.share = share
        self.jobs = 0
        """Jobs in the schedule."""
        self.waiting = 0
        """Of these, those that wait for a worker."""
        self.workers: dict[object, int] = {}
        """Jobs by the worker that has them."""

    def count_job(self) -> None:
        """Count a job in the schedule."""
        self.jobs += 1

    def end_job(self) -> bool:
        """Stop counting a job. Whether it was the last one."""
        self.jobs -= 1
        return not self.jobs

    def wait(self) -> None:
        """Count a job that begins to wait for a worker."""
        self.waiting += 1

    def end_wait(self) -> None:
        """Stop counting a job that waits for a worker."""
        self.waiting -= 1

    def add(self, worker: object) -> None:
        """Count a job that a worker got."""
        self.workers[worker] = self.workers.get(worker, 0) + 1

    def remove(self, worker: object) -> bool:
        """Stop counting a job that a worker had. Whether the message has one worker fewer now."""
        left = self.workers[worker] - 1
        if left:
            self.workers[worker] = left
            return False
        del self.workers[worker]
        return True
