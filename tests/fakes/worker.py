"""Workers in memory: one implementation of `IWorker`; tests decide when a call runs and when its result is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

ACT_S = 0.0001
"""Seconds that a call takes on a clock."""

T = TypeVar("T")


class MemoryWorker:
    """`IWorker` without threads. A call waits for `work`, and its result is known at once.

    `is_prompt`: a call runs when it is handed over. `holds_results`: its result waits for `release`. `fault`: calls raise it
    instead of running."""

    def __init__(self, *, is_prompt: bool = False, holds_results: bool = False) -> None:
        self.is_prompt, self.holds_results = is_prompt, holds_results
        self.is_started = self.is_stopped = False
        self.fault: Exception | None = None
        self.calls: list[Callable[[], None]] = []
        """Calls that have not run, in order."""
        self.results: list[Callable[[], None]] = []
        """Results that are not known yet, in order."""

    def start(self) -> None:
        self.is_started = True

    def stop(self) -> None:
        self.is_stopped = True

    def leave(self) -> None:
        self.is_stopped = True

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        done: Deferred[T] = Deferred()

        def act() -> None:
            try:
                if self.fault is not None:
                    raise self.fault
                result: T | Failure = function()
            except Exception:
                result = Failure()  # type: ignore[no-untyped-call]  # Twisted's
            self.give_back(lambda: done.errback(result) if isinstance(result, Failure) else done.callback(result))

        self.begin(act, getattr(getattr(function, "func", function), "__name__", ""))
        return done

    def begin(self, act: Callable[[], None], name: str) -> None:
        """A call was handed over; `name`: of its function."""
        if self.is_prompt:
            act()
        else:
            self.calls.append(act)

    def give_back(self, tell: Callable[[], None]) -> None:
        """A call has run; `tell` makes its result known."""
        if self.holds_results:
            self.results.append(tell)
        else:
            tell()

    def work(self) -> None:
        """Run the oldest call."""
        self.calls.pop(0)()

    def work_all(self) -> None:
        """Run calls until none waits."""
        while self.calls:
            self.work()

    def work_waiting(self) -> None:
        """Run the calls that wait now, not those that they lead to."""
        waiting, self.calls = self.calls, []
        for act in waiting:
            act()

    def release(self) -> None:
        """Make the results known that wait now."""
        held, self.results = self.results, []
        for tell in held:
            tell()


class ClockWorker(MemoryWorker):
    """The same on a clock: a call runs when time goes by, in order, and its result is known a moment later.

    `slow_s`: seconds that each takes longer, one after the other, but for those in `quick`, which ask the disk for nothing
    that is not in memory."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.slow_s = 0.0
        self.quick: tuple[str, ...] = ()
        self._free_at = 0.0

    def begin(self, act: Callable[[], None], name: str) -> None:
        begins_s = ACT_S
        if self.slow_s and name not in self.quick:
            self._free_at = max(self._free_at, self._clock.seconds()) + self.slow_s
            begins_s += self._free_at - self._clock.seconds()
        self._clock.callLater(begins_s, act)

    def give_back(self, tell: Callable[[], None]) -> None:
        # As with a thread: what is done is known to the reactor only in a later turn, or never when it is killed.
        self._clock.callLater(ACT_S, tell)
