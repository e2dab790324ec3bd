"""Turns of a queue without a reactor: a clock that moves only here, and a worker without a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.errors import Unavailable

_TURN_S = 0.01
_MOST_TURNS = 1_000_000
"""Turns of a clock that stands still but for them: with one a cluster or more, hours of a server's life."""

T = TypeVar("T")


class TurnWorker:
    """`IWorker` without a thread: it runs a call at once and gives the result back in the next turn of the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        done: Deferred[T] = Deferred()
        try:
            result = succeed(function())
        except Exception:  # as a thread: what is none ends the program
            result = fail()
        self._clock.callLater(0, result.chainDeferred, done)
        return done

    def start(self) -> None:
        """There is no thread."""

    def stop(self) -> None:
        """No call is pending."""

    def leave(self) -> None:
        """Nothing is under way."""


def wait_for(clock: Clock, deferred: Deferred[T]) -> None:
    """Turn until it has fired. Raises what it fails with; `Unavailable` where it never fires."""
    failures: list[Failure] = []
    results: list[T] = []
    deferred.addCallbacks(results.append, failures.append)
    turn_until(clock, lambda: bool(results or failures))
    if failures:
        failures[0].raiseException()


def turn_until(clock: Clock, is_done: Callable[[], bool]) -> None:
    """Turn until `is_done` says so. Raises `Unavailable` where it never does."""
    for _ in range(_MOST_TURNS):
        if is_done():
            return
        clock.advance(_TURN_S)
    raise Unavailable("the queue does not come to rest")
