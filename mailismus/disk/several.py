"""Several blocking calls at a time, from threads that each wait for their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import attrs

IDLE_S = 1.0
"""After so long without a call a thread ends."""


@attrs.define(eq=False)
class _Round:
    """Calls that are waited for together: those that nobody has begun, and how many have not ended."""

    calls: deque[Callable[[], None]]
    left: int
    is_over: threading.Event = attrs.Factory(threading.Event)
    error: Exception | None = None


class SeveralCalls:
    """Runs calls in the thread that asks and in others, made on demand, `limit` of them with one that asks. A thread that
    asks runs its own calls alone, so that those of another never keep it. Threads are daemons: one that hangs keeps no
    program from ending."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._rounds: list[_Round] = []
        """Those with calls that nobody has begun."""
        self._threads = 0
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Run all of them, and return when all have ended. Raises the first error."""
        if not calls:
            return
        now = _Round(deque(calls), len(calls))
        if len(calls) > 1:
            self._share(now)
        while (call := self._next_of(now)) is not None:
            self._call(call, now)
        now.is_over.wait()
        if now.error is not None:
            raise now.error

    def _share(self, now: _Round) -> None:
        """Let other threads help."""
        wanted = min(self._limit, len(now.calls)) - 1
        with self._lock:
            self._rounds.append(now)
            missing, self._threads = wanted - self._threads, max(wanted, self._threads)
            self._more.notify(wanted)
        for done in range(missing):
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # a limit on threads or memory: those that are there do all of it
                with self._lock:
                    self._threads -= missing - done
                return

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._more.wait_for(lambda: self._rounds, IDLE_S):
                    self._threads -= 1
                    return
                now = self._rounds[0]
            if (call := self._next_of(now)) is not None:
                self._call(call, now)

    def _next_of(self, now: _Round) -> Callable[[], None] | None:
        with self._lock:
            call = now.calls.popleft() if now.calls else None
            if not now.calls and now in self._rounds:
                self._rounds.remove(now)
            return call

    def _call(self, call: Callable[[], None], now: _Round) -> None:
        error: Exception | None = None
        try:
            call()
        except Exception as e:
            error = e
        with self._lock:
            now.left -= 1
            now.error = now.error or error
            if not now.left:
                now.is_over.set()
