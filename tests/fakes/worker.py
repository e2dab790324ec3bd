"""A worker on a clock: what is handed over is done, in order, when time goes by, never at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

ACT_S = 0.0001
"""Seconds that an act takes."""

T = TypeVar("T")


class ClockWorker:
    """`IWorker` whose acts are delayed calls."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        done: Deferred[T] = Deferred()
        self._clock.callLater(ACT_S, lambda: maybeDeferred(function).chainDeferred(done))
        return done

    def stop(self) -> None:
        pass
