"""Simulated receivers: sites of mail hosts, each with habits and limits that its hosts share.

A site counts what its habits go by: connections, messages of the last minute, recipients that it has seen. What it refuses
for a reason that only its state explains (dead, full, too fast, too early) is counted as wasted.

*Not here*: the words that are said (`network`), what single recipients get (`recipients`).
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from mailismus.dns.mx import MxHost

MINUTE_S = 60.0
TOO_MANY = b"421 4.7.0 too many connections"
TOO_FAST = b"421 4.7.0 too many messages from you"

Answers = Callable[[bytes, bytes, float], bytes | None]
"""The reply to RCPT, by sender, recipient and time; None: the recipient is taken."""


class SiteKind(enum.Enum):
    """The kinds of receivers."""

    FAST = "fast"
    SLOW = "slow"
    TARPIT = "tarpit"
    CAPPED = "421 above a cap"
    RATED = "421 above a rate"
    DEAD = "dead"
    MUTE = "mute"
    """It accepts no connection and refuses none."""
    GREY = "greylisting"
    FLAPPING = "flapping"

    __hash__ = object.__hash__


@attrs.frozen
class SiteHabits:
    """What a receiver does. Times in seconds; 0: no limit, or never."""

    kind: SiteKind = SiteKind.FAST
    round_trip_s: float = 0.03
    reply_s: float = 0.002
    """For each reply."""
    dot_s: float = 0.05
    """For the reply to the final dot, in place of `reply_s`."""
    most_connections: int = 0
    """Connections to all hosts of the site; more are refused by 421."""
    most_a_minute: int = 0
    """Messages in 60 s; more are refused by 421 at MAIL."""
    grey_s: float = 0.0
    """A recipient is refused until so long after its first RCPT."""
    up_s: float = 0.0
    down_s: float = 0.0
    """A flapping one listens for `up_s`, then not for `down_s`."""
    greeting_s: float = 0.0
    """For the greeting, beyond that of a reply."""
    is_pipelining: bool = True
    """It offers PIPELINING."""
    too_many: bytes = TOO_MANY
    """The greeting above `most_connections`."""
    too_fast: bytes = TOO_FAST
    """The reply to MAIL above `most_a_minute`; 421 ends the session."""


class ReceivingSite:
    """The hosts of one or more domains, which share their limits."""

    __slots__ = (
        *("_answers", "_draw_dot_s", "accepted", "connections", "dead", "failed", "habits", "hosts", "messages"),
        *("most_a_minute", "most_open", "name", "open", "seen", "started", "times", "under_way", "wasted"),
    )

    def __init__(
        self,
        name: str,
        hosts: Sequence[MxHost],
        habits: SiteHabits,
        answers: Answers | None = None,
        draw_dot_s: Callable[[], float] | None = None,
    ) -> None:
        """`answers`: to RCPT; None: greylisting alone refuses. `draw_dot_s`: draws the time of a final dot; None: it is
        always the same."""
        self.name, self.hosts, self.habits = name, tuple(hosts), habits
        self._answers, self._draw_dot_s = answers, draw_dot_s
        self.dead: dict[str, SiteKind] = {}
        """Addresses of its hosts that are `DEAD` or `MUTE`, while others answer."""
        self.open = 0
        """Connections that it has accepted, those that it refuses by 421 apart."""
        self.most_open = 0
        self.connections = 0
        """Connections asked for."""
        self.failed = 0
        """Of these, those that became no session."""
        self.messages = 0
        """Transactions begun."""
        self.started = 0
        """Of these, those that it did not refuse by 421."""
        self.most_a_minute = 0
        """The largest number of these in any 60 s, where it counts them."""
        self.accepted = 0
        """Recipients of which it took a message."""
        self.wasted = 0
        """Connections and transactions that only its state refused."""
        self.times: deque[float] = deque()
        self.seen: dict[bytes, float] = {}
        """Recipients that a greylisting one knows, and since when."""
        self.under_way: dict[str, list[float]] = {}
        """By address: of sessions that stand from the begin, with a message under way, the part of its time that is left."""

    @property
    def dot_s(self) -> float:
        """How long this reply to the final dot takes."""
        return self.habits.dot_s if self._draw_dot_s is None else self._draw_dot_s()

    def is_up(self, now: float, address: str = "") -> bool:
        """Whether it listens, at this address."""
        habits = self.habits
        if address in self.dead:
            return False
        if habits.kind is SiteKind.FLAPPING:
            return now % (habits.up_s + habits.down_s) < habits.up_s
        return habits.kind is not SiteKind.DEAD and habits.kind is not SiteKind.MUTE

    def take_over(self, address: str) -> float | None:
        """The part that is left of a message under way at this address, each told once; None: there is no other."""
        parts = self.under_way.get(address)
        return parts.pop() if parts else None

    def connect(self) -> None:
        """Count a connection that is asked for."""
        self.connections += 1

    def waste(self, *, is_session: bool = True) -> None:
        """Count an attempt that only its state refused."""
        self.wasted += 1
        self.failed += not is_session

    def admit(self) -> bool:
        """Whether it takes another connection. Counts it."""
        habits = self.habits
        if habits.most_connections and self.open >= habits.most_connections:
            self.waste(is_session=False)
            return False
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        return True

    def leave(self) -> None:
        """Stop counting an accepted connection."""
        self.open -= 1

    def begin(self, now: float) -> bool:
        """Whether another message may begin. Counts it."""
        self.messages += 1
        times, most = self.times, self.habits.most_a_minute
        while times and times[0] <= now - MINUTE_S:
            times.popleft()
        if most and len(times) >= most:
            self.waste()
            return False
        times.append(now)
        self.started += 1
        self.most_a_minute = max(self.most_a_minute, len(times))
        return True

    def kill(self, address: str, kind: SiteKind) -> None:
        """Let the host at this address answer no more."""
        self.dead[address] = kind

    def preload(self, times: Sequence[float]) -> None:
        """Count messages that began before, and were not too many."""
        self.times = deque(sorted((*self.times, *times))[-self.habits.most_a_minute :])

    def answer(self, sender: bytes, recipient: bytes, now: float) -> bytes | None:
        """The reply to RCPT; None: the recipient is taken."""
        return None if self._answers is None else self._answers(sender, recipient, now)

    @property
    def asks(self) -> bool:
        """Whether `answer` decides about recipients."""
        return self._answers is not None

    def knows(self, recipient: bytes, now: float) -> bool:
        """Whether greylisting lets this recipient through. Only the first attempt may be too early without being wasted."""
        first = self.seen.get(recipient)
        if first is None:
            self.seen[recipient] = now
            return False
        if now - first < self.habits.grey_s:
            self.waste()
            return False
        return True

    def accept(self, recipients: int) -> None:
        """Count the recipients of a message that it took."""
        self.accepted += recipients
