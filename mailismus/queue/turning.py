"""A reactor of its own for a command, turned while the command waits for something: it may wait several times.

*Rules*: Ctrl-C is heard between two turns. Within one it would be raised in whatever callback runs, which Twisted takes for
a failure of that callback.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor
from twisted.python.failure import Failure

from mailismus.queue.reactor import QueueReactor

TURN_S = 0.05
"""Seconds that a turn of the reactor lasts at most."""

T = TypeVar("T")


class _PassingReactor(EPollReactor):
    """A reactor that ends: the descriptors of Twisted's own last as long as the process."""

    def end(self) -> None:
        """Close them. What a thread gives it behind that is lost without a word."""
        self.removeAll()  # type: ignore[no-untyped-call]  # Twisted has no annotations here
        waker, self.waker = self.waker, None
        if waker is not None:
            waker.connectionLost(None)
            self._poller.close()


class TurnedReactor:
    """The reactor. It also resolves names, in threads that `close` ends."""

    def __init__(self) -> None:
        self._reactor = _PassingReactor()  # type: ignore[no-untyped-call]  # Twisted's
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
        return self._turn(lambda: deferred)

    def run(self, work: Callable[[], Coroutine[Deferred[Any], Any, T]]) -> T:
        """Return the result of this coroutine, or raise its error."""
        return self._turn(lambda: Deferred.fromCoroutine(work()))

    def _turn(self, begin: Callable[[], Deferred[T]]) -> T:
        results: list[T] = []
        failures: list[Failure] = []
        with _heard_later() as pressed:
            begin().addCallbacks(results.append, failures.append)
            while not results and not failures:
                self._reactor.iterate(TURN_S)
                if pressed:
                    pressed.clear()
                    self._be_interrupted()
        if pressed:  # behind the last turn
            self._be_interrupted()
        if failures:
            failures[0].raiseException()
        return results[0]

    def _be_interrupted(self) -> None:
        act, self._interrupt = self._interrupt, None
        if act is None:
            raise KeyboardInterrupt
        act()

    def close(self) -> None:
        """End the threads and the reactor. Harmless when repeated; nothing is waited for afterwards."""
        if self._threads.started:
            self._threads.stop()
        self._reactor.end()


@contextmanager
def _heard_later() -> Iterator[list[int]]:
    """Collect Ctrl-C in place of raising it, where this process hears it by the usual exception."""
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
