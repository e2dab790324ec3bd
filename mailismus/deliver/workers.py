"""Workers: a few threads for calls that block (a maildir's disk, the system's resolver).

*Rules*: at most `limit` threads, made when needed; what finds none free waits in order. The threads are daemons: one that
hangs in a call never keeps the program from ending. Give one act, not many small ones: a hand-over costs some 30 us.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

R = TypeVar("R")


class WorkRunner(Protocol):
    """Runs a blocking call elsewhere."""

    def run(self, function: Callable[[], R]) -> Deferred[R]:
        """The Deferred fires in the reactor's thread with the result, or fails with what was raised."""

    def stop(self) -> None:
        """Take nothing more; what is under way is not waited for."""


class ThreadPool:
    """The real ones. `call_in_reactor` is the reactor's `callFromThread`."""

    def __init__(self, name: str, limit: int, call_in_reactor: Callable[..., object]) -> None:
        self._name, self._limit = name, limit
        self._call_in_reactor = call_in_reactor
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        self._is_stopped = False

    def run(self, function: Callable[[], R]) -> Deferred[R]:
        """See `WorkRunner`."""
        done: Deferred[R] = Deferred()

        def act() -> None:
            try:
                result: R | Failure = function()
            except Exception:  # whatever it is goes to the caller; a worker must live on
                result = Failure()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
            self._call_in_reactor(self._finish, done, result)

        self._unfinished += 1
        if self._threads < min(self._limit, self._unfinished):
            self._threads += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._inbox.put(act)
        return done

    def stop(self) -> None:
        """See `WorkRunner`."""
        self._is_stopped = True
        for _ in range(self._threads):
            self._inbox.put(None)

    def _finish(self, done: Deferred[R], result: R | Failure) -> None:
        self._unfinished -= 1
        if isinstance(result, Failure):
            done.errback(result)
        else:
            done.callback(result)

    def _work(self) -> None:
        while (act := self._inbox.get()) is not None:
            act()
