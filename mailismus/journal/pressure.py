"""Pressure: refuses mail while a new message would wait too long for the disk. Sampled twice a second; time is counted in
samples, so it needs no clock that may jump, and costs nothing on a message's path.

A client waits for the reply to its final dot, and gives up after an unknown time; then its message is in the queue all the
same, and comes once more. So mail is refused before its content is sent (451) while the expected wait is longer than
`MOST_WAIT_S`, and items that wait behind a barrier of more than `STALL_S` are refused too. Items of the running barrier are
not: it is not known whether they are durable.

*Rules*: mail is accepted again when the expected wait is below half of `MOST_WAIT_S`. Nothing but mail is refused.
"""

from __future__ import annotations

import errno

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.journal.commit import GroupCommit

LOOK_S = 0.5
"""Seconds between two samples."""

MOST_WAIT_S = 20.0
"""Expected wait in seconds above which mail is refused: shorter than the time-out of any known client."""

PAUSE_S = 2.0
"""Seconds without a step that mean nothing yet: many large messages become durable at once, then none for a moment."""

STALL_S = 60.0
"""Seconds of one barrier after which the items behind it are refused."""


class Pace:
    """Estimate of the duration of consecutive steps, from samples of their number."""

    def __init__(self) -> None:
        self._done = 0
        self._step_s = 0.0
        self.age_s = 0.0
        """Seconds since the last step, while steps were pending."""
        self.expected_s = 0.0
        """Expected seconds until a new step is done."""

    def look(self, done: int, pending: int) -> None:
        """Take a sample: steps done in all, and steps that run or wait."""
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
    """Samples the journal's barriers, and the syncs of large messages."""

    _log = Logger()

    def __init__(self, commits: GroupCommit, reactor: IReactorTime) -> None:
        self._commits = commits
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._barriers, self._files = Pace(), Pace()
        self.finishing = 0
        """Large messages whose sync is under way."""
        self.finished = 0
        """Large messages whose sync has ended, successfully or not."""
        self.is_shedding = False
        """Mail is refused."""

    @property
    def expected_s(self) -> float:
        """Expected wait of a new message, seconds."""
        return max(self._barriers.expected_s, self._files.expected_s)

    def begin_file(self) -> None:
        """A large message is being made durable."""
        self.finishing += 1

    def end_file(self) -> None:
        """It is durable, or failed."""
        self.finishing -= 1
        self.finished += 1

    def start(self) -> None:
        """Start sampling."""
        self._timer = self._reactor.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        """Stop sampling."""
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
