"""Local deliveries under way: which of them hang, and whose mail must wait for that (pure).

A delivery in a thread can't be cut off: it keeps its thread, and its entry stays out, until the file system answers.

*Rules*
- A delivery that has not moved for `HANGS_AFTER_S` hangs: it does not count among the `LIMIT` at once any more, so that
  others have threads; `MOST_THREADS` bound both together.
- A user with a delivery that hangs gets no other until it moves.
- A file system where one hangs, and where no delivery has ended since that one began, is suspected to hang as a whole. One
  delivery there at a time may show that it does not; each that hangs as well doubles the time to the next.
- What has not moved for `STUCK_AFTER_S` is told to people, and mail that waits for it is deferred and not kept waiting.
- A delivery that waits for its content, and not for the maildir, is held against nobody.

Times are monotonic seconds. *Not here*: whose turn it is (`deliver.turns`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import attrs

from mailismus.deliver.job import Job
from mailismus.mail.reply import Reply

LIMIT = 10
"""Deliveries that move, at once."""

MOST_THREADS = 4 * LIMIT
HANGS_AFTER_S = 10.0
STUCK_AFTER_S = 60.0

USER_HANGS = Reply(451, b"4.3.0", b"the user's maildir has not answered for over a minute")
FILE_SYSTEM_HANGS = Reply(451, b"4.3.0", b"the file system of the user's maildir has not answered for over a minute")
ALL_HANG = Reply(451, b"4.3.0", b"too many local deliveries have not moved for over a minute")


@attrs.frozen
class Hang:
    """A delivery that has not moved since then. `file_system`: None where it is not known; `is_reading`: it waits for the
    content of its message."""

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


class Underway:
    """All deliveries that have begun. `file_system_of` tells a user's, from what is known without asking it."""

    def __init__(self, file_system_of: Callable[[bytes], bytes | None]) -> None:
        self._file_system_of = file_system_of
        self._moving: dict[Job, bytes] = {}
        self.moving_of: dict[bytes, int] = {}
        """How many of each user's move."""
        self._hanging: dict[Job, Hang] = {}
        self._steps: dict[Job, tuple[float, bool]] = {}
        """Of deliveries in several steps: when the last began, and whether it waits for the content."""
        self._answered_at: dict[bytes | None, float] = {}
        """When a delivery ended last, by file system; known while anything hangs."""

    def __len__(self) -> int:
        return len(self._moving) + len(self._hanging)

    def __contains__(self, job: Job) -> bool:
        return job in self._moving or job in self._hanging

    @property
    def hanging(self) -> int:
        """How many hang."""
        return len(self._hanging)

    @property
    def has_room(self) -> bool:
        """Whether fewer than `LIMIT` move."""
        return len(self._moving) < LIMIT

    def begin(self, job: Job, user: bytes) -> None:
        """It begins now, at `job.begun_at`."""
        self._move(job, user)

    def step(self, job: Job, now: float, *, is_reading: bool) -> None:
        """One step of it is over, and the next begins."""
        self._steps[job] = (now, is_reading)

    def end(self, job: Job, now: float, *, has_answered: bool) -> bool:
        """It is over; `has_answered`: the file system said something. Gives whether users who had to wait may go on now."""
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
        """Nobody waits for them any more; gives them, with their users."""
        users = self._users()
        for known in (self._moving, self.moving_of, self._hanging, self._steps, self._answered_at):
            known.clear()
        return users

    def look(self, now: float) -> list[Hang]:
        """Find out what hangs; gives what is stuck."""
        users = self._users()
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
        """What has not moved for so long that people should know, as far as `look` has seen it."""
        return [hang for hang in self._hanging.values() if now - hang.since >= STUCK_AFTER_S]

    def block_of(self, user: bytes, now: float) -> Blockage | None:
        """Why this user gets no delivery now; None: he may."""
        if not self._hanging:
            return None
        since = min((hang.since for hang in self._blaming() if hang.user == user), default=None)
        if since is not None:
            return Blockage(since, USER_HANGS)
        if len(self) >= MOST_THREADS:
            return Blockage(max(hang.since for hang in self._hanging.values()), ALL_HANG)
        file_system = self._file_system_of(user)
        suspicion = self._suspicion(file_system)
        if suspicion is None or self._may_try(file_system, *suspicion, now):
            return None
        return Blockage(suspicion[0], FILE_SYSTEM_HANGS)

    def longest_s(self, now: float) -> float:
        """For how long the delivery has not moved that has not moved for longest; 0: none is under way."""
        since = (self._steps.get(job, (job.begun_at, False))[0] for job in self._users())
        return max((now - at for at in since), default=0.0)

    # Within

    def _move(self, job: Job, user: bytes) -> None:
        self._moving[job] = user
        self.moving_of[user] = self.moving_of.get(user, 0) + 1

    def _users(self) -> dict[Job, bytes]:
        return {**{job: hang.user for job, hang in self._hanging.items()}, **self._moving}

    def _blaming(self) -> Iterator[Hang]:
        return (hang for hang in self._hanging.values() if not hang.is_reading)

    def _suspicion(self, file_system: bytes | None) -> tuple[float, float] | None:
        """Since when the first and the last hang that make this file system suspect; None: it is not."""
        if file_system is None:
            return None
        answered_at = self._answered_at.get(file_system, -math.inf)
        since = [hang.since for hang in self._blaming() if hang.file_system == file_system and hang.since > answered_at]
        return (min(since), max(since)) if since else None

    def _may_try(self, file_system: bytes | None, first: float, last: float, now: float) -> bool:
        """Whether a delivery may show that the file system answers."""
        if any(self._file_system_of(user) == file_system for user in self._moving.values()):
            return False
        return now - last >= max(HANGS_AFTER_S, last - first)
