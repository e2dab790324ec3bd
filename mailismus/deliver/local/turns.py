"""Turns of local deliveries: which job begins next, so that no sender, message or user delays the others (pure).

*Rules*
- The line decides by sender, then message, a job each (`schedule.line`), among the jobs of users that may have a delivery.
- A user has at most `SHARE` moving deliveries while a job of another user may go, and never more than `MAX_MOVING`. A user
  with as many leaves the line: his jobs wait for him, in turns of their senders, and as many as he may have come back.
- A user whose turn came and who may not begin now is parked until `unpark`.
- The mail of one sender to one user stays in order.

*Not here*: which users may not begin, and why (`deliver.local.hanging`); what a message may have (`schedule.shares`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.schedule.line import Line

SHARE = 2
MAX_MOVING = 5


class Turns:
    """Waiting jobs. `moving`: number of moving deliveries by user."""

    def __init__(self, moving: Mapping[bytes, int]) -> None:
        self._moving = moving
        self._users: dict[Job, bytes] = {}
        self._jobs: dict[bytes, dict[Job, None]] = {}
        """All waiting jobs by user, in the order in which they came."""
        self._line = Line(is_by_job=True)
        self._aside: dict[bytes, Line] = {}
        """Jobs that are not in the line because their user has his share."""
        self._parked: dict[bytes, Line] = {}

    @property
    def waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._users)

    @property
    def users(self) -> Mapping[Job, bytes]:
        """Waiting jobs, with their users."""
        return self._users

    def add(self, user: bytes, job: Job) -> None:
        """Add a job that waits for its turn."""
        self._users[job] = user
        jobs = self._jobs.get(user)
        if jobs is None:
            self._jobs[user] = {job: None}
            self._line.add(job)
            return
        jobs[job] = None
        line = self._parked.get(user)
        if line is None and (aside := self._aside.get(user)) is not None:
            may_pass = self._moving.get(user, 0) < SHARE and not aside.has_sender(job.message.sender)
            line = None if may_pass else aside
        (self._line if line is None else line).add(job)

    def take(self, may_go: Callable[[Job], bool]) -> tuple[bytes, Job] | None:
        """Remove and return the next job that may go, with its user; None: there is none. Call `park` if the user may not
        begin, else `update` when it moves or is settled."""
        moving = self._moving
        while (job := self._line.take(may_go)) is not None:
            user = self._users[job]
            if moving.get(user, 0) < SHARE:
                return self._remove(user, job)
            self._aside[user] = self._pull_out(user)
        for user, aside in self._aside.items():
            if moving.get(user, 0) < MAX_MOVING and (job := aside.take(may_go)) is not None:
                del self._aside[user]
                if aside:  # the others have their turn before him
                    self._aside[user] = aside
                return self._remove(user, job)
        return None

    def update(self, user: bytes) -> None:
        """Let as many jobs of a user back into the line as he may have, after a change of his moving deliveries."""
        aside = self._aside.get(user)
        if aside is None:
            return
        may_have = SHARE - self._moving.get(user, 0) - (len(self._jobs[user]) - len(aside))
        while may_have > 0 and (job := aside.take(_any)) is not None:
            self._line.add(job)
            may_have -= 1
        if not aside:
            del self._aside[user]

    def park(self, user: bytes, job: Job) -> None:
        """Put a job back that was taken just now, and exclude its user until `unpark`."""
        self._users[job] = user
        self._jobs[user] = {job: None, **self._jobs.get(user, {})}
        self._aside.pop(user, None)
        self._parked[user] = self._pull_out(user)

    def unpark(self) -> None:
        """Give all parked users their turns again, as far as their moving deliveries allow."""
        parked, self._parked = self._parked, {}
        for user, line in parked.items():
            self._aside[user] = line
            self.update(user)

    def oldest_queued_at(self) -> float:
        """When the job came that has waited longest (monotonic seconds); infinity: none waits."""
        return min((next(iter(jobs)).queued_at for jobs in self._jobs.values()), default=math.inf)

    def take_excess(self, keep: int) -> Iterator[Job]:
        """Remove the newest jobs, of the users with the most jobs first, until `keep` are left."""
        users = sorted(self._jobs, key=lambda user: len(self._jobs[user]))
        for position, user in enumerate(users):
            jobs = self._jobs[user]
            share = keep // (len(users) - position)  # of what those with fewer have left
            keep -= min(share, len(jobs))
            for job in list(reversed(jobs))[: max(0, len(jobs) - share)]:
                self._withdraw(user, job)
                yield job

    def take_all(self) -> Iterator[Job]:
        """Remove all waiting jobs."""
        return self.take_excess(0)

    # Internal

    def _remove(self, user: bytes, job: Job) -> tuple[bytes, Job]:
        """Forget a job that is in no line."""
        del self._users[job]
        jobs = self._jobs[user]
        del jobs[job]
        if not jobs:
            del self._jobs[user]
        return user, job

    def _withdraw(self, user: bytes, job: Job) -> None:
        for lines in (self._aside, self._parked):
            line = lines.get(user)
            if line is not None and line.remove(job):
                if not line:
                    del lines[user]
                break
        else:
            self._line.remove(job)
        self._remove(user, job)

    def _pull_out(self, user: bytes) -> Line:
        """A line of all jobs of a user, which leave the common one."""
        line = Line(is_by_job=True)
        for job in self._jobs[user]:
            self._line.remove(job)
            line.add(job)
        return line


def _any(_: Job) -> bool:
    return True
