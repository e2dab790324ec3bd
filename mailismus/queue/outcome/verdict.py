"""The verdict on an attempt that failed: retry the entry at which time, bounce it or remove it (pure).

The retry rule (`queue.outcome.retry`) goes by the age of the message. An entry may expire by a real attempt, which connected
or asked a name server after the later of the start and the last jump of the clock. An attempt that was answered from the
memory of dead hosts counts as well if the message has certainly been here for the whole time: neither did the clock jump nor
the server start since.

*Not here*: ages (`queue.clock.ages`), the log, reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mailismus.config.values.settings import RetrySettings
from mailismus.mail.ids import QueueId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.queue.clock.ages import Ages, Jump
from mailismus.queue.interface import Area, Entry, Latest, Message, Settlement
from mailismus.queue.outcome.disposition import Disposition
from mailismus.queue.outcome.history import with_outcome
from mailismus.queue.outcome.retry import (
    SLACK_S,
    RetryRule,
    age_by_attempts_s,
    lengthening_of,
    longest_delay_s,
    longest_wait_s,
    next_attempt_at,
)

_OF_ACTS = frozenset((Area.HELD, Area.DELETED))
"""Areas whose entries wait as long as an administrator said."""


class JumpWatch(Protocol):
    """The part of the clock watch that is needed here (`queue.clock.clockwatch.ClockWatch`)."""

    jumped_at: float

    def now(self) -> float: ...
    @property
    def steady_s(self) -> float: ...


class Verdicts:
    """One retry rule for messages and another for reports. `salt`: a number that makes the retry times of queues
    differ."""

    def __init__(self, retry: RetrySettings, watch: JumpWatch, ages: Ages, salt: Callable[[], int]) -> None:
        self._watch, self._ages, self._salt = watch, ages, salt
        self.reload(retry)

    def reload(self, retry: RetrySettings) -> None:
        """Set another rule, for attempts that fail from now on."""
        self._rule = RetryRule(retry.delays_s, retry.maxtime_s)
        self._report_rule = RetryRule(retry.delays_s, retry.maxtime_reports_s)

    def of(self, message: Message, entry: Entry, outcome: Outcome, taken_at: float | None) -> tuple[Disposition, Settlement]:
        """Return the decision about a failed attempt, and its settlement. `taken_at`: when the first of the message's
        entries that are out was taken; None: before the clock jumped, or unknown. A report that failed is removed."""
        queue_id = QueueId(message.spool_id, entry.number)
        attempts = entry.attempts + 1
        now = self._watch.now()
        if outcome.kind is OutcomeKind.DEFERRED:
            due_at = self._next_attempt_at(message, entry, outcome, taken_at, now)
            if due_at is not None:
                words: bytes | None = with_outcome(entry, outcome, Disposition.DEFERRED, now, due_at - now)
                settlement = Settlement(queue_id, Area.DEFERRED, due_at, attempts, outcome.reply, outcome.host, words)
                return Disposition.DEFERRED, settlement
            disposition = Disposition.EXPIRED
        else:
            disposition = Disposition.BOUNCED
        if not message.sender:
            return disposition, Settlement(queue_id, None)
        words = with_outcome(entry, outcome, disposition, now) if entry.attempts else None
        return disposition, Settlement(queue_id, Area.BOUNCES, now, attempts, outcome.reply, outcome.host, words)

    def _next_attempt_at(
        self, message: Message, entry: Entry, outcome: Outcome, taken_at: float | None, now: float
    ) -> float | None:
        rule = self._rule if message.sender else self._report_rule
        spool_id, attempts = message.spool_id, entry.attempts + 1
        age_s = self._ages.awake_s(spool_id, message.received_at, now)
        if age_s < 0:  # a wrong clock stored the arrival
            age_s = age_by_attempts_s(rule, attempts)
        made_at = self._made_at(entry, taken_at, now)
        is_certain = min(age_s, self._watch.steady_s) >= rule.maxtime_s - SLACK_S
        counts = made_at is not None and (outcome.known_for_s is None or is_certain)
        return next_attempt_at(
            rule,
            age_s=age_s,
            made_age_s=age_s - (now - made_at) if counts and made_at is not None else None,
            attempts=attempts,
            now=now,
            lengthening=lengthening_of(spool_id, attempts, self._salt()),
            known_for_s=outcome.known_for_s,
            retry=outcome.retry,
        )

    def _made_at(self, entry: Entry, taken_at: float | None, now: float) -> float | None:
        """Return when the failed attempt was made, as far as is known; None: before the clock jumped.

        Entries of one message may be out since different times, and only the earliest is remembered; an entry that became
        due later was taken later.
        """
        if taken_at is not None:
            return min(now, max(taken_at, entry.due_at))
        return entry.due_at if self._watch.jumped_at <= entry.due_at <= now else None

    # after a step of the clock

    def latest_after(self, jump: Jump, now: float) -> Latest:
        """Return the bound of waiting after the clock was set back: entries wait as long as they had to, but never longer
        than the rule allows."""
        rule = self._rule

        def latest(area: Area, attempts: int | None, due_at: float) -> float:
            if area in _OF_ACTS:
                return due_at
            longest_s = 0.0
            if area is Area.DEFERRED:
                longest_s = longest_delay_s(rule) if attempts is None else longest_wait_s(rule, attempts)
            return min(due_at + jump.jump_s, now + longest_s)

        return latest

    def latest_at_start(self, slack_s: float, now: float) -> Latest:
        """Return the bound of waiting at a start, since jumps before it are unknown: entries that wait for a time that the
        rule never sets are due now."""
        bound = now + longest_delay_s(self._rule) + slack_s
        return lambda area, attempts, due_at: now if due_at > bound and area not in _OF_ACTS else due_at
