"""The virtual clock: a heap of events; time jumps from one to the next. No threads, no waiting.

It is the `IReactorTime` of the delivery task, and `at` is a cheaper way for the receivers. Events of one moment run in the
order in which they were planned, so that a run is the same each time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

STARTS_AT = 100_000.0
"""Seconds at which every run begins: small, so that sums of short times are exact enough. It is the monotonic time, too."""


class Call:
    """A planned call, as `IDelayedCall`."""

    __slots__ = ("_args", "_clock", "_function", "_is_active", "_kwargs", "time")

    def __init__(
        self,
        clock: VirtualClock,
        time: float,
        function: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._clock, self._function, self._args, self._kwargs = clock, function, args, kwargs
        self.time = time
        self._is_active = True

    def getTime(self) -> float:
        return self.time

    def active(self) -> bool:
        return self._is_active

    def cancel(self) -> None:
        self._is_active = False

    def reset(self, seconds: float) -> None:
        before, self.time = self.time, self._clock.seconds() + seconds
        if self.time < before:
            self._clock.at(self.time, self.run)

    def delay(self, seconds: float) -> None:
        self.reset(self.time - self._clock.seconds() + seconds)

    def run(self, _: object = None) -> None:
        """Make the call, if it is still to be made and its time has come."""
        if not self._is_active:
            return
        if self.time > self._clock.seconds():
            self._clock.at(self.time, self.run)
            return
        self._is_active = False
        self._function(*self._args, **self._kwargs)


class VirtualClock:
    """Time and the events to come."""

    def __init__(self) -> None:
        self.now = STARTS_AT
        self._heap: list[tuple[float, int, Callable[[Any], object], Any]] = []
        self._turn: deque[Call] = deque()
        self._number = 0
        self.events = 0
        """Events that have run."""

    def seconds(self) -> float:
        """The time of day, UTC seconds."""
        return self.now

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kw: Any) -> Call:  # noqa: A002  # Twisted's name
        """See `IReactorTime`."""
        call = Call(self, self.now + delay, callable, args, kw)
        if delay <= 0:
            self._turn.append(call)
        else:
            self.at(call.time, call.run)
        return call

    def getDelayedCalls(self) -> list[Call]:
        """See `IReactorTime`."""
        return list(self._turn)

    def at(self, time: float, function: Callable[[Any], object], argument: Any = None) -> None:
        """Call this function with this argument at this time."""
        self._number += 1
        heappush(self._heap, (time, self._number, function, argument))

    def run(self, until: float = math.inf, is_over: Callable[[], bool] = lambda: False) -> None:
        """Run events up to this time, or until `is_over`, which is asked at each moment."""
        heap, turn = self._heap, self._turn
        while True:
            while turn:
                self.events += 1
                turn.popleft().run()
            if not heap or heap[0][0] > until or is_over():
                break
            time, _, function, argument = heappop(heap)
            self.now = time
            self.events += 1
            function(argument)
