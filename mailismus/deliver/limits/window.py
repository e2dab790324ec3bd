"""A window: how many connections one host, or the hosts of one MX set together, may have now (pure).

*The problem* is that of TCP's congestion control: a receiver does not say how much it takes, only that it was too much
(421, a 4xx about rate or connections, a time-out, a reset). So are the rules:

- **Start**: from 1, doubled with each windowful of messages that the receiver accepts, until the first cut (slow start,
  RFC 5681). A windowful is as many messages as the window has connections.
- **Silence**: only what was delivered lets it grow. But one slow message must not hold up all others: while those that
  stand are silent, one connection is lent beyond the size (`lend`), a single one until the window grows or is cut.
- **Evidence**: messages count only while as many sessions stand as the window has connections (RFC 7661). A window that
  nobody fills says nothing about a larger one, and a connection whose greeting is not there yet may still be refused.
- **Cut**: a window is halved, to 1 at least, once for all that was under way: a transaction that began before the last
  cut changes nothing. One that is cut again at 1 is *stopped*: no connection is opened until its pause is over.
- **Refused greeting**: the receiver has just said how many connections it takes, those that stand. The window becomes
  that, and so does the threshold.
- **Back**: for `RECOVER_S` nothing grows. Then the window grows fast to the threshold, three quarters of what was cut:
  a receiver that was disturbed once does not lose minutes. CUBIC (RFC 9438) goes back to 0.7 at once; here half comes
  first, since a 421 is clearer than a lost packet. The *probe* above the threshold waits for a pause, `FIRST_PAUSE_S`,
  twice as long with each further cut up to `MAX_PAUSE_S`, and again the first after `CALM_S` without a cut. Then it is
  1 more for each windowful. A probe that is cut was 1 too much: the threshold is then 1 less, since that was held.

*The figures*: at a receiver with a fixed cap each probe costs one refusal. With pauses of 5, 10, 20, 40, 45 s and so on
there are 10 in the first 300 s, and then one in 45 s. A longer pause would save refusals; but a cap that is gone must
be noticed, and the window be grown, within 60 s.

Memory: a few numbers. Without a cut `note_delivered` is two comparisons.
"""

from __future__ import annotations

import math

from mailismus.mail.reply import Reply
from mailismus.observe.habits import WindowState

RECOVER_S = 5.0
FIRST_PAUSE_S = 5.0
MAX_PAUSE_S = 45.0
CALM_S = 120.0
"""Without a cut for so long after a pause, the next one is the first again."""
JITTER = 0.1
"""Of a pause: it is lengthened by at most this share, so that windows cut by one cause do not open together."""
_NO_LIMIT = 1 << 30


class Window:
    """The connections that one receiver may have.

    The caller asks `allows` before each new connection, and lets connections above `size` end after their transactions.
    *After a restart* windows are new; *after an outage* (no host of the set could be reached) the caller calls
    `begin_anew`. In both cases many sets begin together: the caller gives each a random `wait_s` (`sets`)."""

    __slots__ = (
        "_before",
        "_ceiling",
        "_chance",
        "_credit",
        "_is_stopped",
        "_most",
        "_pause_s",
        "_probes_at",
        "_threshold",
        "_wakes_at",
        "cut_at",
        "cut_since",
        "last_reply",
        "lent",
        "size",
    )

    def __init__(self, limit: int | None, chance: float = 0.0, size: int = 1) -> None:
        """`limit`: connections at most; None or 0: no limit. `chance`: a random number from 0 to 1, for the pauses. `size`:
        connections that it has at first, more than 1 where so many stand."""
        self._most = limit or _NO_LIMIT
        self._chance = chance
        self.size = size
        """Connections allowed now, at least 1; of a stopped window none may be opened all the same (`allows`)."""
        self.lent = 0
        """Connections allowed beyond that because nobody answers: 1 or none."""
        self._threshold = _NO_LIMIT
        """Below it a windowful doubles the window, from it on it adds one."""
        self._ceiling = self._most
        """The size that it may grow to now: without a pause the limit."""
        self._credit = 0
        """Messages accepted since it grew, while it was full."""
        self._is_stopped = False
        self._wakes_at = math.inf
        """When the ceiling rises: the end of a pause, or of its first part."""
        self._probes_at = -math.inf
        self._pause_s = FIRST_PAUSE_S
        self._before = 0
        """Its size at the last cut, 0: it is not cut, or has grown beyond that."""
        self.cut_at = -math.inf
        """When it was cut last."""
        self.cut_since = -math.inf
        """When it was cut first of the cuts that it has not outgrown: "throttled since"."""
        self.last_reply: Reply | None = None
        """The reply of the last cut that had one."""

    @property
    def is_cut(self) -> bool:
        """Whether it was cut, and has since then not held the size that it had."""
        return self._before > 0

    def allows(self, open_connections: int, now: float) -> bool:
        """Whether one more connection may be opened. `open_connections`: those of this receiver, those being made included.
        A pause that is over ends with this question, or with `opens_at`."""
        if self._wakes_at <= now:
            self._end_pause(now)
        return open_connections < self.size + self.lent and not self._is_stopped

    def opens_at(self, now: float) -> float | None:
        """When a paused window may grow, or a stopped one opens; None: it grows by deliveries alone."""
        if self._wakes_at <= now:
            self._end_pause(now)
        if self._wakes_at == math.inf or (self.size >= self._most and not self._is_stopped):
            return None
        return self._wakes_at

    def note_delivered(self, open_connections: int) -> bool:
        """Note that a message was accepted, while sessions stood on so many connections. Return whether the size grew."""
        size = self.size
        if open_connections < size:
            return False
        if size >= self._most and not self._before:
            return False
        self._credit += 1
        return self._grow()

    def lend(self, now: float) -> bool:
        """Allow one connection beyond the size, since nobody answers for long: it may be quicker. Return whether it is new.
        Never in a pause."""
        if self._wakes_at <= now:
            self._end_pause(now)
        if self.lent or self._wakes_at != math.inf or self.size >= self._ceiling:
            return False
        self.lent = 1
        return True

    def note_cut(self, now: float, began_at: float, reply: Reply | None = None, open_connections: int | None = None) -> bool:
        """Note a sign of too much from a transaction that began then. Return whether it cut the window.

        `open_connections`: those open or being made. Where the window was not full, half of them is left, for more were not
        tried lately."""
        if began_at <= self.cut_at:
            return False
        used = self.size if open_connections is None else min(self.size, max(1, open_connections))
        self._is_stopped = used == 1 and self._before > 0
        is_probe = self._wakes_at == math.inf and used == self.size > self._threshold
        self._threshold = used - 1 if is_probe else max(1, used * 3 // 4)
        self._cut(now, reply)
        self._pause(now)
        self.size = self._ceiling = max(1, used // 2)
        return True

    def note_refused(self, now: float, standing: int, reply: Reply | None = None) -> None:
        """Note a refused greeting while so many other connections stood."""
        most = max(1, standing)
        is_paused = now < self._wakes_at < math.inf
        if is_paused:  # one of several that were under way, or in the place of one just closed
            self._threshold = max(self._threshold, most)
            self._is_stopped = standing == 0
            self.last_reply = reply or self.last_reply
        else:
            self._is_stopped = standing == 0 and self._before > 0
            self._threshold = most
            self._cut(now, reply)
        self._pause(now)
        self.size = self._ceiling = min(self.size, most)

    def begin_anew(self, now: float, wait_s: float = 0.0) -> None:
        """Begin with 1 and without a memory of cuts, after an outage; nothing is opened before `wait_s` have passed."""
        self.size, self.lent = 1, 0
        self._threshold, self._ceiling, self._credit, self._before = _NO_LIMIT, self._most, 0, 0
        self._is_stopped = wait_s > 0
        self._wakes_at = self._probes_at = now + wait_s if wait_s > 0 else math.inf
        self._pause_s = FIRST_PAUSE_S

    def use_limit(self, limit: int | None) -> None:
        """Take over another limit. What was learnt of the receiver stays."""
        self._most = limit or _NO_LIMIT
        self.size, self.lent = min(self.size, self._most), 0
        self._ceiling = self._most if self._wakes_at == math.inf else min(self._ceiling, self._most)

    def state(self, now: float) -> WindowState:
        """What another process may begin with."""
        return WindowState(
            self.size,
            0 if self._threshold == _NO_LIMIT else self._threshold,
            0 if self._ceiling == self._most else self._ceiling,
            self._credit,
            self._before,
            self._is_stopped,
            self._pause_s,
            _seconds(self._wakes_at - now),
            _seconds(self._probes_at - now),
            _seconds(now - self.cut_at),
            self._chance,
        )

    def restore(self, state: WindowState, now: float) -> None:
        """Begin with the state of another process."""
        self.size = min(state.size, self._most)
        self._threshold = state.threshold or _NO_LIMIT
        self._ceiling = min(state.ceiling or self._most, self._most)
        self._credit, self._before, self._is_stopped = state.credit, state.before, state.is_stopped
        self._pause_s, self._chance = state.pause_s, state.chance
        self._wakes_at = now + state.wakes_in_s if state.wakes_in_s >= 0 else math.inf
        self._probes_at = now + state.probes_in_s if state.probes_in_s >= 0 else -math.inf
        self.cut_at = self.cut_since = now - state.cut_before_s if state.cut_before_s >= 0 else -math.inf

    # Internal

    def _cut(self, now: float, reply: Reply | None) -> None:
        """Note a cut of the present size, and put off the probe."""
        if now - self.cut_at > self._pause_s + CALM_S:
            self._pause_s = FIRST_PAUSE_S
        else:
            self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)
        if not self._before:
            self.cut_since = now
            self.last_reply = None
        self._before = self.size
        self.cut_at = now
        self.last_reply = reply or self.last_reply
        self._probes_at = now + self._pause_s * (1.0 + JITTER * self._chance)

    def _pause(self, now: float) -> None:
        """Begin the first part of a pause: nothing grows. Of a stopped window it is the whole pause."""
        self._credit = self.lent = 0
        recovers_at = now + RECOVER_S * (1.0 + JITTER * self._chance)
        self._probes_at = max(self._probes_at, recovers_at)
        self._wakes_at = self._probes_at if self._is_stopped else recovers_at

    def _end_pause(self, now: float) -> None:
        """Let it grow to the threshold, or without a bound if the time of the probe has come."""
        self._is_stopped = False
        if now >= self._probes_at:
            self._wakes_at = math.inf
            self._ceiling = self._most
        else:
            self._wakes_at = self._probes_at
            self._ceiling = min(self._most, max(self.size, self._threshold))
        self._grow()

    def _grow(self) -> bool:
        """Grow if a windowful was accepted and nothing holds it back."""
        size = self.size
        if self._credit < size:
            return False
        if self._before and size >= self._before and self._wakes_at == math.inf:
            self._before = 0
        if size >= self._ceiling:
            return False
        self._credit = self.lent = 0
        self.size = min(2 * size, self._threshold, self._ceiling) if size < self._threshold else size + 1
        return True


def _seconds(span: float) -> float:
    """A span as it is told: below 0 there is none, 0 is over."""
    return -1.0 if math.isinf(span) else round(max(0.0, span), 3)
