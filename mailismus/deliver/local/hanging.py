"""Local deliveries under way: which of them hang, and which users must wait for that (pure).

A delivery in a thread can't be cut off: it keeps its thread, and its entry stays out, until the file system answers.

*Rules*
- A delivery without progress for `HANGS_AFTER_S` hangs. It does not count towards `LIMIT` any more, so that others get
  threads; `MAX_THREADS` limits moving and hanging deliveries together.
- A user with a delivery that hangs gets no other until it moves.
- A file system is suspected to hang as a whole if a delivery hangs there and none has ended since that one began. Then one
  delivery at a time may test it; each test that hangs doubles the time to the next.
- A delivery without progress for `STUCK_AFTER_S` is stuck: it is reported, and mail that waits for it is deferred.
- A delivery that waits for its content, not for the maildir, counts against no user and no file system.

Times are monotonic seconds. *Not here*: whose turn it is (`deliver.local.turns`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import attrs

from mailismus.deliver.jobs.job import Job
from mailismus.mail.reply import Reply

LIMIT = 10
"""Deliveries that move at the same time."""

MAX_THREADS = 4 * LIMIT
HANGS_AFTER_S = 10.0
STUCK_AFTER_S = 60.0

USER_HANGS = Reply(451, b"4.3.0", b"the user's maildir has not answered for over a minute")
FILE_SYSTEM_HANGS = Reply(451, b"4.3.0", b"the file system of the user's maildir has not answered for over a minute")
ALL_HANG = Reply(451, b"4.3.0", b"too many local deliveries have not moved for over a minute")


@attrs.frozen
class Hang:
    """A delivery that has not moved since the time `since`. `file_system`: None if unknown. `is_reading`: it waits for its
    content."""

    job: Job
    user: bytes
    since: float
    file_system: bytes | None
    is_reading: bool


@attrs.frozen
class Blockage:
    """Why a user gets no delivery now, and since when."""

    since: float
    reply: Reply


class ActiveDeliveries:
    """All deliveries that have begun. `file_system_of` maps a user to a file system, without asking that file system."""

    def __init__(self, file_system_of: Callable[[bytes], bytes | None]) -> None:
        self._file_system_of = file_system_of
        self._moving: dict[Job, bytes] = {}
        self.moving_of: dict[bytes, int] = {}
        """Number of moving deliveries by user."""
        self._hanging: dict[Job, Hang] = {}
        self._steps: dict[Job, tuple[float, bool]] = {}
        """Of deliveries in several steps: when the last step began, and whether it waits for the content."""
        self._answered_at: dict[bytes | None, float] = {}
        """When a delivery last ended, by file system; kept while any delivery hangs."""

    def __len__(self) -> int:
        return len(self._moving) + len(self._hanging)

    def __contains__(self, job: Job) -> bool:
        return job in self._moving or job in self._hanging

    @property
    def hanging(self) -> int:
        """Number of deliveries that hang."""
        return len(self._hanging)

    def room(self, pace: int, since: float) -> int:
        """How many more deliveries may begin; 0 or less: none. `pace`: how many that began after `since` may move."""
        recent = sum([job.begun_at > since for job in self._moving])
        return min(LIMIT - len(self._moving), pace - recent)

    def begin(self, job: Job, user: bytes) -> None:
        """Note that a delivery begins, at `job.begun_at`."""
        self._move(job, user)

    def step(self, job: Job, now: float, *, is_reading: bool) -> None:
        """Note that its next step begins."""
        self._steps[job] = (now, is_reading)

    def end(self, job: Job, now: float, *, has_answered: bool) -> bool:
        """Note that a delivery is over. `has_answered`: the file system replied. True: users who had to wait may go on
        now."""
        if self._steps:
            self._steps.pop(job, None)
        hang = self._hanging.pop(job, None) if self._hanging else None
        if hang is not None:
            user = hang.user
        else:
            user = self._moving.pop(job)
            left = self.moving_of.pop(user) - 1
            if left:
                self.moving_of[user] = left
            if not self._hanging:
                return False
        file_system = self._file_system_of(user)
        was_suspected = self._suspicion(file_system) is not None
        if has_answered:
            self._answered_at[file_system] = now
        if not self._hanging:
            self._answered_at.clear()
        return hang is not None or was_suspected

    def end_all(self) -> dict[Job, bytes]:
        """Forget all deliveries, and return them with their users."""
        users = self.users()
        for known in (self._moving, self.moving_of, self._hanging, self._steps, self._answered_at):
            known.clear()
        return users

    def update(self, now: float) -> list[Hang]:
        """Find out which deliveries hang; return those that are stuck."""
        users = self.users()
        self._moving.clear()
        self.moving_of.clear()
        self._hanging.clear()
        for job, user in users.items():
            since, is_reading = self._steps.get(job, (job.begun_at, False))
            if now - since < HANGS_AFTER_S:
                self._move(job, user)
            else:
                self._hanging[job] = Hang(job, user, since, self._file_system_of(user), is_reading)
        if not self._hanging:
            self._answered_at.clear()
        return self.stuck(now)

    def stuck(self, now: float) -> list[Hang]:
        """The deliveries that are stuck, as of the last `update`."""
        return [hang for hang in self._hanging.values() if now - hang.since >= STUCK_AFTER_S]

    def blockage_of(self, user: bytes, now: float) -> Blockage | None:
        """Why this user gets no delivery now; None: he may."""
        if not self._hanging:
            return None
        since = min((hang.since for hang in self._blaming() if hang.user == user), default=None)
        if since is not None:
            return Blockage(since, USER_HANGS)
        if len(self) >= MAX_THREADS:
            return Blockage(max(hang.since for hang in self._hanging.values()), ALL_HANG)
        file_system = self._file_system_of(user)
        suspicion = self._suspicion(file_system)
        if suspicion is None or self._may_try(file_system, *suspicion, now):
            return None
        return Blockage(suspicion[0], FILE_SYSTEM_HANGS)

    def longest_s(self, now: float) -> float:
        """Longest time without progress of a delivery under way, in seconds; 0: none is under way."""
        since = (self._steps.get(job, (job.begun_at, False))[0] for job in self.users())
        return max((now - at for at in since), default=0.0)

    # Internal

    def _move(self, job: Job, user: bytes) -> None:
        self._moving[job] = user
        self.moving_of[user] = self.moving_of.get(user, 0) + 1

    def users(self) -> dict[Job, bytes]:
        """All deliveries with their users."""
        return {**{job: hang.user for job, hang in self._hanging.items()}, **self._moving}

    def _blaming(self) -> Iterator[Hang]:
        return (hang for hang in self._hanging.values() if not hang.is_reading)

    def _suspicion(self, file_system: bytes | None) -> tuple[float, float] | None:
        """When the first and the last hang began that make this file system suspect; None: it is not suspect."""
        if file_system is None:
            return None
        answered_at = self._answered_at.get(file_system, -math.inf)
        since = [hang.since for hang in self._blaming() if hang.file_system == file_system and hang.since > answered_at]
        return (min(since), max(since)) if since else None

    def _may_try(self, file_system: bytes | None, first: float, last: float, now: float) -> bool:
        """Whether a delivery may test that the file system answers."""
        if any(self._file_system_of(user) == file_system for user in self._moving.values()):
            return False
        return now - last >= max(HANGS_AFTER_S, last - first)
