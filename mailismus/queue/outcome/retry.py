"""The retry rule: when the next attempt is made, and when there is none (pure).

After attempt n fails, attempt n+1 comes the n-th delay later (the last delay repeats), lengthened by at most a tenth. Two
classes of failure choose another delay of the list: greylisting at one of the first three attempts the first, a full
mailbox the last. An attempt that would fall at or after arrival + maxtime is made at that moment and is the last; when it
has failed, the entry has expired. The rule goes by the age of the message (`queue.clock.ages`): a wrong clock alone makes no
bounces. An attempt that decides nothing about expiry (`made_age_s` None) is followed by another after the usual delay.

Greylisting takes the first delay three times at most. That goes by the number of the attempt, which is stored with the
entry; the classes of earlier failures are not stored. For new mail to a server that greylists it is the same. An entry with
other failures before gets the first delay less often, which costs time and never an attempt. Two attempts at most are made
earlier than the rule without classes would make them.

*Rules*: the same lengthening for all recipients of a message in one attempt, so that they stay together; different ones for
different messages, so that what failed together does not come back together.
"""

from __future__ import annotations

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import RetryClass

LENGTHENING = 0.1
"""The most a delay is lengthened by, as a share of it."""

SLACK_S = 0.002
"""Stored times are rounded to milliseconds: a time this close before the moment of expiry is that moment."""

SHORTEST_WAIT_S = 1.0
"""The shortest wait of an expired entry that could not be tried."""

SOON_ATTEMPTS = 3
"""After that many attempts greylisting is a failure like any other."""

_MASK = (1 << 64) - 1


@attrs.frozen
class RetryRule:
    """The numbers of the rule, in seconds. `delays_s` is not empty. `maxtime_s` is 0 for entries that never expire."""

    delays_s: tuple[float, ...]
    maxtime_s: float


def next_attempt_at(
    rule: RetryRule,
    *,
    age_s: float,
    made_age_s: float | None,
    attempts: int,
    now: float,
    lengthening: float,
    known_for_s: float | None = None,
    retry: RetryClass = RetryClass.USUAL,
) -> float | None:
    """Return the time of the next attempt (UTC seconds, not before `now`), or None: the entry has expired.

    `age_s`: age of the message. `made_age_s`: its age when the failed attempt was made; None: that attempt does not count
    for expiry. `attempts`: attempts so far, the failed one included, from 1. `lengthening`: 0 to 1, see `lengthening_of`.
    `known_for_s`, `retry`: as in `mail.outcome.Outcome`; an entry beyond its time waits no longer than `known_for_s`.
    """
    delay_s = _delay_s(rule, attempts, retry) * (1 + LENGTHENING * lengthening)
    if not rule.maxtime_s:
        return now + delay_s
    if made_age_s is not None and made_age_s >= rule.maxtime_s - SLACK_S:
        return None
    left_s = rule.maxtime_s - age_s
    if left_s > 0:
        return now + min(delay_s, left_s)
    if made_age_s is not None:  # the attempt began in time and hung beyond the end
        return now
    return now + (delay_s if known_for_s is None else min(delay_s, max(known_for_s, SHORTEST_WAIT_S)))


def _delay_s(rule: RetryRule, attempts: int, retry: RetryClass) -> float:
    """Return the delay after this number of attempts, from 1, without its lengthening."""
    delays_s = rule.delays_s
    if retry is RetryClass.GREYLISTING and attempts <= SOON_ATTEMPTS:
        return delays_s[0]
    if retry is RetryClass.QUOTA:
        return delays_s[-1]
    return delays_s[min(attempts, len(delays_s)) - 1]


def age_by_attempts_s(rule: RetryRule, attempts: int) -> float:
    """Return the least age of a message whose attempt of this number has just been made, whatever its failures were."""
    return sum(min(_delay_s(rule, n, retry) for retry in RetryClass) for n in range(1, attempts))


def longest_wait_s(rule: RetryRule, attempts: int) -> float:
    """Return the longest wait in seconds after this number of attempts, in the usual class.

    It bounds waits after the clock was set: an entry of a full mailbox may come earlier then.
    """
    return rule.delays_s[min(max(attempts, 1), len(rule.delays_s)) - 1] * (1 + LENGTHENING)


def longest_delay_s(rule: RetryRule) -> float:
    """Return the longest wait of any entry in seconds."""
    return max(rule.delays_s) * (1 + LENGTHENING)


def lengthening_of(spool_id: SpoolId, attempts: int, salt: int) -> float:
    """Return a number of [0, 1) for this message and attempt, evenly spread (splitmix64). `salt` makes queues differ."""
    mixed = (spool_id * 0x9E3779B97F4A7C15 + attempts * 0xD1B54A32D192ED03 + salt) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / (1 << 64)
