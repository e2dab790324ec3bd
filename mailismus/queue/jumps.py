"""Jumps of the clock: the steps that keep entries from waiting too long after the clock was set.

*Rules*: after a step back every waiting entry is hastened at once, and again after `AGAIN_S`, for entries that were on their
way to the disk. Before the first take the same is done for times that no retry rule gives: the clock may have been set since
the last run.

*Not here*: noticing a jump (`queue.clock.clockwatch`), the bounds of waiting (`queue.outcome.verdict`), ages
(`queue.clock.ages`).
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

from mailismus.queue.clock.ages import Ages, Jump
from mailismus.queue.clock.clockwatch import CLOCK_JUMP_S, ClockWatch
from mailismus.queue.interface import IQueue
from mailismus.queue.out_entries import OutEntries
from mailismus.queue.outcome.verdict import Verdicts

AGAIN_S = (2.0, 120.0)
"""Seconds after a step back at which entries are hastened again. The second one leaves time for a barrier that hangs."""


class JumpResponse:
    """To be told of jumps by `watch` (`respond`); `on_jump` adds listeners that come after it."""

    def __init__(
        self, provider: IQueue, clock: IReactorTime, watch: ClockWatch, ages: Ages, verdicts: Verdicts, out: OutEntries
    ) -> None:
        self._provider, self._clock, self._watch = provider, clock, watch
        self._ages, self._verdicts, self._out = ages, verdicts, out
        self._listeners: list[Callable[[], None]] = []

    def on_jump(self, act: Callable[[], None]) -> None:
        """Call `act` after each jump."""
        self._listeners.append(act)

    def begin(self) -> None:
        """Hasten entries whose times come from a wrong clock of an earlier run. To be called before the first take."""
        now = self._watch.now()
        self._provider.hasten(self._verdicts.latest_at_start(CLOCK_JUMP_S, now), now)

    def respond(self, jump: Jump, now: float) -> None:
        """Note a jump of the clock, which says `now` behind it."""
        self._out.forget_times()
        self._ages.jumped(jump)
        if jump.jump_s < 0:
            self._provider.hasten(self._verdicts.latest_after(jump, now), now)
            for delay_s in AGAIN_S:
                self._clock.callLater(delay_s, self._hasten_again)
        for act in self._listeners:
            act()

    def _hasten_again(self) -> None:
        """Hasten the entries that were on their way to the disk when the clock was set back."""
        now = self._watch.now()
        self._provider.hasten(self._verdicts.latest_after(Jump(0.0, 0.0), now), now)
