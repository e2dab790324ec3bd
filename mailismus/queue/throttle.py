"""Throttle of work that may take its time: it leaves most of the processor to other work of this process.

    a slice of work -> a pause, the longer the more the process had to do in the pause before -> the next slice

The interpreter lets one thread run at a time, so a slice in a worker holds up the reactor as one in the reactor does.

*Rules*: while the process is busy such work has the share of its throttle, however many do it at once; an
idle process pauses for `LEAST_S`. A process that has no other work never pauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

SHARE = 0.03
"""Of the time of a busy process, for what is measured. What the caller does with the results comes on top."""

ACT_SHARE = 0.05
"""The same for acts of administrators, if the queue says nothing else (`IOpenedQueue.act_share`): somebody waits for their
end, and a tenth of the deliveries is what they may cost."""

LEAST_S = 0.002
MOST_S = 1.0
"""Seconds of a pause, at least and at most."""

T = TypeVar("T")


@attrs.frozen
class WorkClocks:
    """Clocks of a process with other work. `reactor`: its seconds are those of a clock that does not jump; `process_s`,
    `thread_s`: processor seconds of this process, and of the calling thread."""

    reactor: IReactorTime
    process_s: Callable[[], float]
    thread_s: Callable[[], float]

    @classmethod
    def of_process(cls, reactor: IReactorTime) -> WorkClocks:
        """Those of this process. `reactor`: its own, whose seconds do not jump."""
        return cls(reactor, time.process_time, time.thread_time)


class WorkThrottle:
    """Pauses of one queue, or of one kind of its work. `clocks` None: there are none; `share`: of the time of a busy process
    that the work may have."""

    def __init__(self, clocks: WorkClocks | None = None, share: float = SHARE) -> None:
        self._clocks = clocks
        self._pause_per_s = 1 / share - 1
        """Seconds of a pause for each second of work, in a busy process."""
        self.most_used_s = MOST_S / self._pause_per_s
        """Seconds of work behind which one pause is long enough, at most."""
        self._busy = 1.0
        """How busy the process was in the pause before, from 0 to 1."""
        self._free_at_s = 0.0
        """When the pauses that were asked for will have ended."""

    def metered(self, act: Callable[[], T]) -> Callable[[], tuple[T, float]]:
        """Return a function that does the same in any thread, and returns the processor seconds that it took, too."""
        clocks = self._clocks

        def metered() -> tuple[T, float]:
            if clocks is None:
                return act(), 0.0
            began_s = clocks.thread_s()
            result = act()
            return result, clocks.thread_s() - began_s

        return metered

    def begin(self) -> tuple[float, float]:
        """Return the moment at which some work begins, for `worked_s`."""
        clocks = self._clocks
        return (0.0, 0.0) if clocks is None else (clocks.reactor.seconds(), clocks.process_s())

    def worked_s(self, begun: tuple[float, float]) -> float:
        """Return for how many seconds that work can have held up other work, whichever threads did it: no longer than it
        lasted, and no longer than the whole process has used processors meanwhile."""
        clocks = self._clocks
        if clocks is None:
            return 0.0
        return max(0.0, min(clocks.reactor.seconds() - begun[0], clocks.process_s() - begun[1]))

    async def rest(self, used_s: float) -> None:
        """Pause behind work that took so many seconds (`metered`, `worked_s`)."""
        clocks = self._clocks
        if clocks is None:
            return
        reactor = clocks.reactor
        pause_s = min(MOST_S, max(LEAST_S, used_s * self._pause_per_s * self._busy))
        began_s, process_s = reactor.seconds(), clocks.process_s()
        self._free_at_s = max(began_s, self._free_at_s) + pause_s
        await deferLater(reactor, self._free_at_s - began_s)
        took_s = reactor.seconds() - began_s
        if took_s > 0:
            self._busy = min(1.0, 2 * (clocks.process_s() - process_s) / took_s)
