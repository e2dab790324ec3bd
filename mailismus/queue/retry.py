"""The retry rule: when the next attempt is made, and when there is none (pure).

After attempt n fails, attempt n+1 comes the n-th delay later (the last delay repeats), lengthened by at most a tenth. One
that would fall at or after arrival + maxtime is made at that moment and is the last; when it has failed, the entry has
expired. Expiry goes by the wall clock, but never before an attempt that was made after the later of the start and a
jump of the clock: a wrong clock alone makes no bounces. What arrived later than now, by a clock that was wrong then, is as
old as its attempts make it.

*Rules*: the same lengthening for all recipients of a message in one attempt, so that they stay together; different ones for
different messages, so that what failed together does not come back together.
"""

from __future__ import annotations

import attrs

from mailismus.mail.ids import SpoolId

LENGTHENING = 0.1
"""The most a delay is lengthened by, as a share of it."""

SLACK_S = 0.002
"""Times at rest are rounded to milliseconds: so much before the moment of expiry is that moment."""

_MASK = (1 << 64) - 1


@attrs.frozen
class RetryRule:
    """The numbers of the rule, in seconds. `delays_s` is not empty. `maxtime_s` is 0 for entries that never expire."""

    delays_s: tuple[float, ...]
    maxtime_s: float


def next_attempt_at(
    rule: RetryRule, *, received_at: float, attempts: int, made_at: float | None, now: float, lengthening: float
) -> float | None:
    """When the next attempt is made (UTC seconds, not before `now`), or None: the entry has expired.

    `attempts`: those made, from 1, the one that just failed included. `made_at`: when that one was made; None: before the
    clock could be trusted. `lengthening`: 0 to 1, see `lengthening_of`.
    """
    delay_s = rule.delays_s[min(attempts, len(rule.delays_s)) - 1]
    due_at = now + delay_s * (1 + LENGTHENING * lengthening)
    if not rule.maxtime_s:
        return due_at
    if received_at > now:
        received_at = now - sum(rule.delays_s[min(n, len(rule.delays_s) - 1)] for n in range(attempts - 1))
    expires_at = received_at + rule.maxtime_s
    if made_at is not None and made_at >= expires_at - SLACK_S:
        return None
    return max(now, min(due_at, expires_at))


def longest_delay_s(rule: RetryRule) -> float:
    """Seconds that an entry waits at most."""
    return max(rule.delays_s) * (1 + LENGTHENING)


def lengthening_of(spool_id: SpoolId, attempts: int, salt: int) -> float:
    """A number of [0, 1) for this message and attempt, evenly spread (splitmix64). `salt` makes servers differ."""
    mixed = (spool_id * 0x9E3779B97F4A7C15 + attempts * 0xD1B54A32D192ED03 + salt) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / (1 << 64)
