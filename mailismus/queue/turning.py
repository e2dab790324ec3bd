"""A reactor of its own for a command, turned while the command waits for something: it may wait several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor
from twisted.python.failure import Failure

from mailismus.queue.reactor import QueueReactor

TURN_S = 0.05
"""Seconds that a turn of the reactor lasts at most."""

T = TypeVar("T")


class TurnedReactor:
    """The reactor. It also resolves names, in threads that `close` ends."""

    def __init__(self) -> None:
        self._reactor = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self._threads = self._reactor.getThreadPool()
        self._threads.start()  # a start of the reactor would do it
        self._interrupt: Callable[[], None] | None = None

    @property
    def reactor(self) -> QueueReactor:
        """The reactor."""
        return cast(QueueReactor, self._reactor)

    def on_interrupt(self, act: Callable[[], None]) -> None:
        """Call `act` at the first Ctrl-C, and go on waiting."""
        self._interrupt = act

    def wait(self, deferred: Deferred[T]) -> T:
        """Return its result, or raise its failure."""
        results: list[T] = []
        failures: list[Failure] = []
        deferred.addCallbacks(results.append, failures.append)
        while not results and not failures:
            try:
                self._reactor.iterate(TURN_S)
            except KeyboardInterrupt:
                act, self._interrupt = self._interrupt, None
                if act is None:
                    raise
                act()
        if failures:
            failures[0].raiseException()
        return results[0]

    def close(self) -> None:
        """End the threads. Harmless when repeated; nothing is waited for afterwards."""
        if self._threads.started:
            self._threads.stop()
