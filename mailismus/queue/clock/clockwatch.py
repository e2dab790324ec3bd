"""The clock watch: the time of day, and whether it jumped.

The time of day jumps when it moves against the monotonic clock by more than `CLOCK_JUMP_S` between two calls of `now`.
Either it was set (a *step*), or the machine was suspended: then time went by, but not for this process. A clock that counts
suspended time tells the two apart.

*Not here*: the effect of a jump on ages (`queue.clock.ages`), on waiting entries (`queue.jumps`), on hosts (`deliver`).
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.clock.ages import Jump

CLOCK_JUMP_S = 60.0
"""The wall clock jumped when it moves by more than this against the monotonic one."""


class ClockWatch:
    """`clock`: UTC seconds; `monotonic`: seconds that never jump; `elapsed`: the same, and counts suspended time. A jump is
    noticed at the next call of `now`."""

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        elapsed: Callable[[], float],
    ) -> None:
        self._seconds, self._monotonic, self._elapsed = clock.seconds, monotonic, elapsed
        self._listeners: list[Callable[[Jump, float], None]] = []
        self.jumped_at = clock.seconds()
        """The time after the last jump; before the first, the time of the beginning."""
        self._steady_since = monotonic()
        self._offset_s = self.jumped_at - self._steady_since
        self._elapsed_offset_s = elapsed() - self._steady_since

    def listen(self, act: Callable[[Jump, float], None]) -> None:
        """Call `act` with each jump and the time after it."""
        self._listeners.append(act)

    def now(self) -> float:
        """Return UTC seconds."""
        now = self._seconds()
        offset_s = now - self._monotonic()
        jump_s = offset_s - self._offset_s
        self._offset_s = offset_s
        if jump_s > CLOCK_JUMP_S or jump_s < -CLOCK_JUMP_S:
            self._tell(jump_s, now)
        return now

    @property
    def steady_s(self) -> float:
        """Monotonic seconds since the last jump."""
        return self._monotonic() - self._steady_since

    def _tell(self, jump_s: float, now: float) -> None:
        self._steady_since = self._monotonic()
        offset_s = self._elapsed() - self._steady_since
        suspended_s = max(0.0, offset_s - self._elapsed_offset_s)
        self._elapsed_offset_s = offset_s
        self.jumped_at = now
        self._log.warn(
            "The clock jumped by {jump_s:.0f} s; of that the machine was suspended for {suspended_s:.0f} s",
            jump_s=jump_s,
            suspended_s=suspended_s,
        )
        jump = Jump(jump_s, jump_s - suspended_s)
        for act in self._listeners:
            act(jump, now)
