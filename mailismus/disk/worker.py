"""Workers: where blocking calls run, so that the reactor's thread never waits for a disk.

A worker runs a call elsewhere and gives its result back in the reactor's thread. Handing over and back costs about 30 us:
hand over per batch or per delivery, never per message.
"""

from __future__ import annotations

import errno
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure

T = TypeVar("T")


class IWorker(Protocol):
    """Runs blocking calls.

    - *Order*: with one thread calls run in the order handed over; with several they begin in that order, and may overlap and
      end in any order.
    - *Fork*: no thread exists before `start`, since threads do not survive the fork of a daemon. Calls handed over before
      `start` wait for it.
    - *On demand*: a thread is made when a call finds none free, up to the limit; further calls wait. A thread that was made
      stays. Where the system gives no thread, calls wait for those that are there; with none, they fail with `OSError`.
    - *Hanging*: a call can't be cut off. `stop` waits for it, `leave` does not. Threads are daemons: one that hangs keeps no
      program from ending.
    """

    def start(self) -> None:
        """Begin to run calls. Does nothing when called again."""

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        """Run this call. Fires in the reactor's thread with its result, or with the exception that it raised."""

    def stop(self) -> None:
        """Run what was handed over, then end. Blocks until then. Nothing may be handed over afterwards."""

    def leave(self) -> None:
        """As `stop`, but wait for nothing: calls that have not ended may be lost with the process."""


class ThreadPool:
    """`IWorker` over daemon threads, `limit` at most."""

    def __init__(self, reactor: IReactorFromThreads, name: str, limit: int = 1) -> None:
        """`name`: of the threads, which are numbered from 0 on."""
        self._reactor = reactor
        self._name = name
        self._limit = limit
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ended: deque[tuple[Deferred[Any], Any]] = deque()
        """Results that are on their way to the reactor's thread. It is woken for the first of several: to wake it costs a
        system call, and the interpreter's lock twice."""
        self._is_woken = False
        self._unfinished = 0
        """Calls handed over whose results are not known in the reactor's thread."""
        self._is_started = False

    def start(self) -> None:
        self._is_started = True
        self._grow()

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        done: Deferred[T] = Deferred()

        def act() -> None:
            try:
                result: T | Failure = function()
            except Exception:  # the caller gets it; the thread lives on
                result = Failure()  # type: ignore[no-untyped-call]  # Twisted's
            self._ended.append((done, result))
            if not self._is_woken:
                self._is_woken = True
                self._reactor.callFromThread(self._finish_some)

        self._unfinished += 1
        if self._is_started and len(self._threads) < self._limit and not self._grow():
            error = OSError(errno.EAGAIN, f"the system gives no thread for {self._name}")
            self._reactor.callFromThread(self._finish, done, Failure(error))  # type: ignore[no-untyped-call]  # Twisted's
        else:
            self._inbox.put(act)
        return done

    def stop(self) -> None:
        self.leave()
        for thread in self._threads:
            thread.join()

    def leave(self) -> None:
        for _ in self._threads:
            self._inbox.put(None)

    def _grow(self) -> bool:
        """Make the threads that are lacking, as far as the system allows; return whether there is any."""
        while len(self._threads) < min(self._limit, self._unfinished):
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # a limit on threads or memory; the next call tries again
                break
            self._threads.append(thread)
        return bool(self._threads)

    def _finish_some(self) -> None:
        """Give back the results that are there. One that comes from now on wakes the reactor again, perhaps in vain."""
        self._is_woken = False
        ended = self._ended
        try:
            for _ in range(len(ended)):
                self._finish(*ended.popleft())
        finally:
            if ended and not self._is_woken:
                self._is_woken = True
                self._reactor.callFromThread(self._finish_some)

    def _finish(self, done: Deferred[T], result: T | Failure) -> None:
        self._unfinished -= 1
        if isinstance(result, Failure):
            done.errback(result)
        else:
            done.callback(result)

    def _work(self) -> None:
        while (act := self._inbox.get()) is not None:
            act()


@attrs.frozen
class Workers:
    """Workers of a queue: one thread for the journal, a few for files."""

    journal: IWorker
    files: IWorker
