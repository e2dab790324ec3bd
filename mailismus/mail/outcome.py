"""The outcome: what became of one queue entry in one attempt. What the queue does about it is its disposition.

"May have been sent" is DEFERRED: rather a duplicate than a loss.
"""

from __future__ import annotations

import enum

import attrs

from mailismus.mail.reply import Reply


class OutcomeKind(enum.Enum):
    """The three things an attempt can come to."""

    DELIVERED = "delivered"
    DEFERRED = "deferred"
    FAILED = "failed"


@attrs.frozen
class Outcome:
    """What one attempt came to: the reply that decided it (a peer's, or our own words), and the host that gave it.

    `host` is as logged behind `relay=`: `name[ip]:port`, `local`, or `none` when nobody was reached.
    """

    kind: OutcomeKind
    reply: Reply
    host: bytes
    known_for_s: float | None = None
    """None: an attempt was made, which connected or asked a name server. Otherwise neither was done, because the result was
    known from before; it counts as known for so many more seconds, infinity where nobody can say."""
