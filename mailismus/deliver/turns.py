"""The turns of users: which local delivery begins next, so that no user's mail keeps the others' waiting (pure).

*Rules*
- Users take turns, whatever number of messages waits for each; the messages of one user stay in order.
- A user has at most `SHARE` deliveries that move while another user waits with less, and never more than `MOST`.
- A user whose turn came and who may not begin now is parked: he is asked for again after `unpark`.

*Not here*: who may not begin, and why (`deliver.hanging`).
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping

from mailismus.deliver.job import Job

SHARE = 2
MOST = 5


class Turns:
    """Jobs that wait, by user. `moving` says how many deliveries of each user move."""

    def __init__(self, moving: Mapping[bytes, int]) -> None:
        self._moving = moving
        self._jobs: dict[bytes, deque[Job]] = {}
        """Of users for whom any waits."""
        self._within_share: OrderedDict[bytes, None] = OrderedDict()
        self._beyond_share: OrderedDict[bytes, None] = OrderedDict()
        self._parked: set[bytes] = set()
        self.waiting = 0
        """Jobs that wait."""

    def add(self, user: bytes, job: Job) -> None:
        """This job waits for its turn."""
        self.waiting += 1
        jobs = self._jobs.get(user)
        if jobs is not None:
            jobs.append(job)
            return
        self._jobs[user] = deque((job,))
        if user in self._moving:
            self.changed(user)
        else:
            self._within_share[user] = None

    def next(self) -> bytes | None:
        """The user whose turn it is; None: nobody waits who may have another delivery."""
        for user in self._within_share or self._beyond_share:
            return user
        return None

    def take(self, user: bytes) -> Job:
        """The oldest job of this user, whose turn is over. Call `changed` when it moves, or is not begun."""
        self._leave(user)
        jobs = self._jobs[user]
        self.waiting -= 1
        job = jobs.popleft()
        if not jobs:
            del self._jobs[user]
        return job

    def changed(self, user: bytes) -> None:
        """Another number of his deliveries moves: put him where he belongs. Who is there already keeps his place."""
        if user not in self._jobs or user in self._parked:
            return
        moving = self._moving.get(user, 0)
        if moving < SHARE:
            self._beyond_share.pop(user, None)
            self._within_share.setdefault(user)
        elif moving < MOST:
            self._within_share.pop(user, None)
            self._beyond_share.setdefault(user)
        else:
            self._leave(user)

    def park(self, user: bytes) -> None:
        """Not this user now."""
        self._leave(user)
        self._parked.add(user)

    def unpark(self) -> None:
        """All who wait have their turns again, as far as what moves allows it."""
        self._parked.clear()
        for user in self._jobs:
            self.changed(user)

    def oldest_queued_at(self) -> float:
        """Since when the job waits that has waited longest (monotonic seconds); infinity: none waits."""
        return min((jobs[0].queued_at for jobs in self._jobs.values()), default=math.inf)

    def take_excess(self, keep: int) -> Iterator[Job]:
        """Take the newest jobs away, of the users with the most of them first, until `keep` wait."""
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
        """Take all jobs that wait."""
        return self.take_excess(0)

    # Within

    def _leave(self, user: bytes) -> None:
        self._within_share.pop(user, None)
        if self._beyond_share:
            self._beyond_share.pop(user, None)
        if self._parked:
            self._parked.discard(user)
