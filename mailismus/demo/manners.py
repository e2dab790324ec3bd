"""Manners: what each mail host of the playground does (pure)."""

from __future__ import annotations

import enum
from collections import deque


class Manner(enum.Enum):
    """How a mail host behaves; the value is the first label of its domain."""

    WELL = "well"
    SLOW = "slow"
    THROTTLING = "throttling"
    GREYLISTING = "greylisting"
    DEAD = "dead"
    FULL = "full"


TOP_DOMAIN = "test"
"""Reserved for tests (RFC 6761): no name server of the world knows it."""

SLOW_S = 2.0
MOST_CONNECTIONS = 2
MOST_A_MINUTE = 20
GREY_S = 15.0
MAX_GREY = 10_000
_OVER_QUOTA = frozenset({b"ivan", b"judy"})
SAID = {
    Manner.WELL: "takes everything",
    Manner.SLOW: f"takes {SLOW_S:g} s for each reply",
    Manner.THROTTLING: f"refuses more than {MOST_CONNECTIONS} connections and {MOST_A_MINUTE} messages a minute",
    Manner.GREYLISTING: f"takes mail when it comes again after {GREY_S:g} s",
    Manner.DEAD: "does not answer",
    Manner.FULL: "has mailboxes that are full, and unknown users",
}


def domain_of_manner(manner: Manner) -> str:
    """The domain whose host behaves so."""
    return f"{manner.value}.{TOP_DOMAIN}"


class HostManners:
    """What one mail host says. It remembers what it must, within bounds. Times: monotonic seconds."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.taken = 0
        """Messages that it has taken."""
        self._seen: dict[tuple[bytes, bytes], float] = {}
        self._began: deque[float] = deque()

    @property
    def delay_s(self) -> float:
        """How long each reply takes."""
        return SLOW_S if self.manner is Manner.SLOW else 0.0

    def greet(self, connections: int) -> bytes:
        """The greeting of a new connection, of so many that are open."""
        if self.manner is Manner.THROTTLING and connections > MOST_CONNECTIONS:
            return b"421 4.7.0 Too many connections from you, try again later"
        return b"220 mx.%b ESMTP" % domain_of_manner(self.manner).encode("ascii")

    def answer_sender(self, now: float) -> bytes:
        """The reply to MAIL."""
        if self.manner is Manner.THROTTLING:
            while self._began and now - self._began[0] >= 60.0:
                self._began.popleft()
            if len(self._began) >= MOST_A_MINUTE:
                return b"450 4.7.1 You send too fast, slow down"
            self._began.append(now)
        return b"250 2.1.0 OK"

    def answer_recipient(self, sender: bytes, recipient: bytes, now: float) -> bytes:
        """The reply to RCPT."""
        user = recipient.partition(b"@")[0]
        if self.manner is Manner.GREYLISTING:
            if len(self._seen) >= MAX_GREY:
                self._seen.clear()
            wait_s = self._seen.setdefault((sender, recipient), now) + GREY_S - now
            if wait_s > 0:
                return b"451 4.7.1 Greylisted, try again in %d seconds" % (wait_s + 1)
        if self.manner is Manner.FULL:
            if user == b"nobody":
                return b"550 5.1.1 No such user here"
            if user in _OVER_QUOTA:
                return b"552 5.2.2 The mailbox of %b is full for good" % user
            return b"452 4.2.2 The mailbox of %b is full" % user[:64]
        return b"250 2.1.5 OK"

    def answer_content(self) -> bytes:
        """The reply to the final dot."""
        self.taken += 1
        return b"250 2.0.0 Taken and thrown away"
