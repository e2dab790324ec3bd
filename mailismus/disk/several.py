"""Several blocking calls at a time, from a thread that waits for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

import attrs

IDLE_S = 1.0
"""After so long without a call a thread ends."""


@attrs.define(eq=False)
class _Round:
    """Calls that are waited for together."""

    left: int
    is_over: threading.Event = attrs.Factory(threading.Event)
    error: Exception | None = None


class SeveralCalls:
    """Runs calls in the thread that asks and in others, made on demand: `limit` in all. Threads are daemons: one that hangs
    keeps no program from ending. One thread asks at a time."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._inbox: SimpleQueue[tuple[Callable[[], None], _Round]] = SimpleQueue()
        self._threads = 0
        self._lock = threading.Lock()

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Run all of them, and return when all have ended. Raises the first error."""
        if not calls:
            return
        now = _Round(len(calls))
        for call in calls:
            self._inbox.put((call, now))
        self._grow(min(self._limit, len(calls)) - 1)
        while self._take(0.0):
            pass
        now.is_over.wait()
        if now.error is not None:
            raise now.error

    def _grow(self, wanted: int) -> None:
        with self._lock:
            missing, self._threads = wanted - self._threads, max(wanted, self._threads)
        for done in range(missing):
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # a limit on threads or memory: those that are there do all of it
                with self._lock:
                    self._threads -= missing - done
                return

    def _work(self) -> None:
        while self._take(IDLE_S):
            pass
        with self._lock:
            self._threads -= 1

    def _take(self, wait_s: float) -> bool:
        """Run the next call; False: none came within this time."""
        try:
            call, now = self._inbox.get(timeout=wait_s) if wait_s else self._inbox.get_nowait()
        except Empty:
            return False
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
        return True
