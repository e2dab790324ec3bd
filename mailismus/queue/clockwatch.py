"""The clock watch: the time of day, with an eye on whether it jumped.

What was written down as a time of day is to be doubted after a jump: since when an attempt has been out, until when an
entry waits. The beginning counts as a jump: nobody knows what the clock did before.

*Not here*: what becomes of it (`queue.manager`, `queue.retry`).
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

CLOCK_JUMP_S = 60.0
"""The wall clock jumped when it moves by more than this against the monotonic one."""


class ClockWatch:
    """`clock` gives UTC seconds, `monotonic` seconds that never jump; `jumped` is told the time behind each jump, when
    somebody next asks for it."""

    _log = Logger()

    def __init__(self, clock: IReactorTime, monotonic: Callable[[], float], jumped: Callable[[float], None]) -> None:
        self._clock, self._monotonic, self._jumped = clock, monotonic, jumped
        self._offset_s = clock.seconds() - monotonic()
        self.jumped_at = clock.seconds()
        """The time behind the last jump."""
        self._is_new = True

    def now(self) -> float:
        """UTC seconds."""
        now = self._clock.seconds()
        offset_s = now - self._monotonic()
        jump_s = offset_s - self._offset_s
        self._offset_s = offset_s
        if jump_s > CLOCK_JUMP_S or jump_s < -CLOCK_JUMP_S:
            self._log.warn("The clock jumped by {jump_s:.0f} s", jump_s=jump_s)
            self.jumped_at = now
            self._is_new = True
        if self._is_new:
            self._is_new = False
            self._jumped(now)
        return now
