"""A worker on a clock: what is handed over is done, in order, when time goes by, never at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

ACT_S = 0.0001
"""Seconds that an act takes."""

T = TypeVar("T")


class ClockWorker:
    """`IWorker` whose acts are delayed calls. `slow_s`: seconds that each takes beyond its due, one after the other, but for
    those in `quick`, which ask the disk for nothing that is not in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.slow_s = 0.0
        self.quick: tuple[str, ...] = ()
        self._free_at = 0.0

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        done: Deferred[T] = Deferred()

        def act() -> None:
            # As with a thread: what is done is known to the reactor only in a later turn, or never when it is killed.
            try:
                result = function()
            except Exception:
                self._clock.callLater(ACT_S, done.errback, Failure())  # type: ignore[no-untyped-call]  # Twisted's
            else:
                self._clock.callLater(ACT_S, done.callback, result)

        begins_s = ACT_S
        if self.slow_s and getattr(function, "__name__", "") not in self.quick:
            self._free_at = max(self._free_at, self._clock.seconds()) + self.slow_s
            begins_s += self._free_at - self._clock.seconds()
        self._clock.callLater(begins_s, act)
        return done

    def stop(self) -> None:
        pass
