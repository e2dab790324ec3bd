"""Turns of users: which local delivery begins next, so that one user's mail does not delay the others (pure).

*Rules*
- Users take turns, however many messages wait for each; the messages of one user stay in order.
- A user has at most `SHARE` moving deliveries while a user with fewer waits, and never more than `MAX_MOVING`.
- A user whose turn came and who may not begin now is parked until `unpark`.

*Not here*: which users may not begin, and why (`deliver.hanging`).
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping

from mailismus.deliver.job import Job

SHARE = 2
MAX_MOVING = 5


class Turns:
    """Waiting jobs by user. `moving`: number of moving deliveries by user."""

    def __init__(self, moving: Mapping[bytes, int]) -> None:
        self._moving = moving
        self._jobs: dict[bytes, deque[Job]] = {}
        """Of users with a waiting job."""
        self._within_share: OrderedDict[bytes, None] = OrderedDict()
        self._beyond_share: OrderedDict[bytes, None] = OrderedDict()
        self._parked: set[bytes] = set()
        self.waiting = 0
        """Number of waiting jobs."""

    def add(self, user: bytes, job: Job) -> None:
        """Add a job that waits for its turn."""
        self.waiting += 1
        jobs = self._jobs.get(user)
        if jobs is not None:
            jobs.append(job)
            return
        self._jobs[user] = deque((job,))
        if user in self._moving:
            self.update(user)
        else:
            self._within_share[user] = None

    def next(self) -> bytes | None:
        """The user whose turn it is; None: no waiting user may have another delivery."""
        for user in self._within_share or self._beyond_share:
            return user
        return None

    def take(self, user: bytes) -> Job:
        """Take the oldest job of this user and end his turn. Call `update` when it moves, or is not begun."""
        self._leave(user)
        jobs = self._jobs[user]
        self.waiting -= 1
        job = jobs.popleft()
        if not jobs:
            del self._jobs[user]
        return job

    def update(self, user: bytes) -> None:
        """Put a user in the right line after a change of his moving deliveries. He keeps his position if the line is
        right."""
        if user not in self._jobs or user in self._parked:
            return
        moving = self._moving.get(user, 0)
        if moving < SHARE:
            self._beyond_share.pop(user, None)
            self._within_share.setdefault(user)
        elif moving < MAX_MOVING:
            self._within_share.pop(user, None)
            self._beyond_share.setdefault(user)
        else:
            self._leave(user)

    def park(self, user: bytes) -> None:
        """Exclude this user until `unpark`."""
        self._leave(user)
        self._parked.add(user)

    def unpark(self) -> None:
        """Give all parked users their turns again, as far as their moving deliveries allow."""
        self._parked.clear()
        for user in self._jobs:
            self.update(user)

    def oldest_queued_at(self) -> float:
        """When the job came that has waited longest (monotonic seconds); infinity: none waits."""
        return min((jobs[0].queued_at for jobs in self._jobs.values()), default=math.inf)

    def take_excess(self, keep: int) -> Iterator[Job]:
        """Remove the newest jobs, of the users with the most jobs first, until `keep` are left."""
        users = sorted(self._jobs, key=lambda user: len(self._jobs[user]))
        for position, user in enumerate(users):
            jobs = self._jobs[user]
            share = keep // (len(users) - position)  # of what those with fewer have left
            keep -= min(share, len(jobs))
            while len(jobs) > share:
                self.waiting -= 1
                yield jobs.pop()
            if not jobs:
                del self._jobs[user]
                self._leave(user)

    def take_all(self) -> Iterator[Job]:
        """Remove all waiting jobs."""
        return self.take_excess(0)

    # Internal

    def _leave(self, user: bytes) -> None:
        self._within_share.pop(user, None)
        if self._beyond_share:
            self._beyond_share.pop(user, None)
        if self._parked:
            self._parked.discard(user)
