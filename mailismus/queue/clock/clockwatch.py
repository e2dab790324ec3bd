"""The clock watch: the time of day, with an eye on whether it jumped.

The time of day jumps when it moves against the monotonic clock by more than `CLOCK_JUMP_S` between two looks. Either
somebody set it (a *step*), or the machine was suspended: then time went by, but not for this process. A clock that counts
suspended time tells the two apart.

*Not here*: what a jump means for ages (`queue.clock.ages`), for what waits (`queue.manager`), for hosts (`deliver`).
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.clock.ages import Jump

CLOCK_JUMP_S = 60.0
"""The wall clock jumped when it moves by more than this against the monotonic one."""


class ClockWatch:
    """`clock` gives UTC seconds, `monotonic` seconds that never jump, `elapsed` such that count suspended time too;
    a jump is noticed when the time is asked for next."""

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
        """The time behind the last jump; before the first, of the beginning."""
        self._steady_since = monotonic()
        self._offset_s = self.jumped_at - self._steady_since
        self._elapsed_offset_s = elapsed() - self._steady_since

    def listen(self, act: Callable[[Jump, float], None]) -> None:
        """Call `act` with each jump and the time behind it."""
        self._listeners.append(act)

    def now(self) -> float:
        """UTC seconds."""
        now = self._seconds()
        offset_s = now - self._monotonic()
        jump_s = offset_s - self._offset_s
        self._offset_s = offset_s
        if jump_s > CLOCK_JUMP_S or jump_s < -CLOCK_JUMP_S:
            self._tell(jump_s, now)
        return now

    @property
    def steady_s(self) -> float:
        """How long the clock has not jumped, in seconds that never do."""
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
