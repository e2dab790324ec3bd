"""Pressure: whether a message that came now would wait too long for the disk. Looked at twice a second, counted in looks: no
clock that may jump, and nothing on a message's path.

A client waits for us behind its final dot, and gives up after a time that it alone knows; then its message is there all the
same and comes once more. So mail is refused before its content is sent (451) while the wait to be expected is longer than
`MOST_WAIT_S`, and what waits behind a barrier that has taken `STALL_S` is refused too. What a barrier is running for is not:
nobody can say whether it is durable.

*Rules*: as soon as less than half of that is to be expected, mail is accepted again. Nothing but mail is held back.
"""

from __future__ import annotations

import errno

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.journal.commit import GroupCommit

LOOK_S = 0.5
"""Seconds between two looks."""

MOST_WAIT_S = 20.0
"""Seconds that a message may be expected to wait for the disk: shorter than the time-out of any client that we know of."""

PAUSE_S = 2.0
"""Seconds without a step that say nothing yet: of large messages many become durable at once, and then none for a moment."""

STALL_S = 60.0
"""Seconds after which what waits behind one barrier is refused."""


class Pace:
    """How long steps take that are done one after the other, by looking now and then how many have been."""

    def __init__(self) -> None:
        self._done = 0
        self._step_s = 0.0
        self.age_s = 0.0
        """Seconds since a step was done last, while some were to do."""
        self.expected_s = 0.0
        """Seconds until one would be done that came now."""

    def look(self, done: int, pending: int) -> None:
        """So many steps have been done in all, so many are under way or wait."""
        if done != self._done:
            self._step_s = (self.age_s + LOOK_S) / (done - self._done) if self.age_s else 0.0
            self.age_s = 0.0
        elif pending:
            self.age_s += LOOK_S
        else:
            self._step_s, self.age_s = self._step_s / 2, 0.0
        self._done = done
        still_s = self.age_s if self.age_s >= PAUSE_S else 0.0
        self.expected_s = max(self._step_s, still_s) * (pending + 1)


class Pressure:
    """Looks at the journal's barriers, and at large messages that are made durable."""

    _log = Logger()

    def __init__(self, commits: GroupCommit, reactor: IReactorTime) -> None:
        self._commits = commits
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._barriers, self._files = Pace(), Pace()
        self.finishing = 0
        """Large messages that are being made durable."""
        self.finished = 0
        """Those that were, or came to nothing."""
        self.is_shedding = False
        """Mail is refused."""
        self.sheds = 0
        """How often that began."""

    @property
    def expected_s(self) -> float:
        """Seconds that a message would wait."""
        return max(self._barriers.expected_s, self._files.expected_s)

    def begin_file(self) -> None:
        """A large message is being made durable."""
        self.finishing += 1

    def end_file(self) -> None:
        """It is durable, or failed."""
        self.finishing -= 1
        self.finished += 1

    def start(self) -> None:
        """Begin to look."""
        self._timer = self._reactor.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        """No more looks."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._reactor.callLater(LOOK_S, self._look)
        commits = self._commits
        self._barriers.look(commits.batches + commits.failures, commits.pending_batches)
        self._files.look(self.finished, self.finishing)
        expected_s = self.expected_s
        if not self.is_shedding and expected_s > MOST_WAIT_S:
            self.is_shedding = True
            self.sheds += 1
            self._log.warn(
                "The disk is slow: a message would wait {wait:.0f} s for it; mail is refused until it is quicker.",
                wait=expected_s,
            )
        elif self.is_shedding and expected_s < MOST_WAIT_S / 2:
            self.is_shedding = False
            self._log.info("The disk is quick enough again; mail is accepted.")
        if self._barriers.age_s >= STALL_S:
            refused = commits.refuse_waiting(OSError(errno.EAGAIN, "the disk has not answered for a long time"))
            if refused:
                self._log.warn(
                    "The disk has not answered for {age:.0f} s: {count} messages that wait are refused.",
                    age=self._barriers.age_s,
                    count=refused,
                )
