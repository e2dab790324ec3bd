"""The outcome: the result of one attempt for one queue entry. The disposition is the queue's decision about it.

An attempt that may have sent the message is DEFERRED: rather a duplicate than a loss.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from mailismus.mail.reply import Reply


class OutcomeKind(enum.Enum):
    """The three results of an attempt."""

    DELIVERED = "delivered"
    DEFERRED = "deferred"
    FAILED = "failed"


class RetryClass(enum.Enum):
    """The classes of failures, by how soon another attempt makes sense. `queue.outcome.retry` gives each its delay."""

    USUAL = "usual"
    GREYLISTING = "greylisting"
    """The peer refuses whom it does not know yet, and takes the same mail soon."""
    QUOTA = "quota"
    """The mailbox is full: a person has to make room."""


class Outcome(NamedTuple):
    """The result of one attempt: the reply that decided it (a peer's or our own), and the host that gave it.

    `host` is as logged behind `relay=`: `name[ip]:port`, `local`, or `none` if no host was reached.
    """

    kind: OutcomeKind
    reply: Reply
    host: bytes
    known_for_s: float | None = None
    """None: the attempt connected or asked a name server. Otherwise it did neither, because the result was known already.
    Then this is the number of seconds for which it stays known; infinity if that is unknown."""
    retry: RetryClass = RetryClass.USUAL
    """The class of the failure; of no account for what was delivered."""
    tls: bytes = b""
    """The level of TLS that a failed attempt has met, as in the log (`!`: missed); empty: none, or no host was reached."""
