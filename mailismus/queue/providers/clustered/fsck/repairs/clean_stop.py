"""A start and a clean stop of the server's own queue, without a server: what ends a repair.

It is what sees to everything that a start sees to, with the code of the start: clusters of a checkpoint that never came to
its end, tails, marks that are owed, strays. Nothing is delivered, for nobody asks for mail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.worker import Workers
from mailismus.errors import Unavailable
from mailismus.journal.writer import RandomBytes
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.recovery.opening import open_locked

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
        result = maybeDeferred(function)
        self._clock.callLater(0, result.chainDeferred, done)
        return done

    def start(self) -> None:
        """There is no thread."""

    def stop(self) -> None:
        """No call is pending."""

    def leave(self) -> None:
        """Nothing is under way."""


def start_and_stop(settings: QueueSettings, disk: IDisk, locks: list[ILock], random_bytes: RandomBytes, now: float) -> None:
    """Start the server's queue and stop it cleanly; the locks of queue and spool, which are held, are released. Raises
    `StartError`, `StorageError`, OSError."""
    clock = Clock()
    worker = TurnWorker(clock)
    opened = open_locked(settings, disk, locks, worker, clock, random_bytes)
    try:
        queue = build(settings, disk, opened, Workers(worker, worker), clock, lambda: now + clock.seconds())
        _wait(clock, queue.open())
        scan = queue.parts.release.scan
        _turn_until(clock, lambda: scan.has_failed or (scan.has_run and not scan.is_running))
        abandoned = queue.checkpoints.counts.abandoned
        _wait(clock, queue.checkpoints.run_over_all())
        _wait(clock, queue.close())
        if scan.has_failed or queue.checkpoints.counts.abandoned > abandoned:
            raise Unavailable("what was repaired is in the journal, but could not be written behind; see the log")
    finally:
        opened.release()


def _wait(clock: Clock, deferred: Deferred[T]) -> None:
    failures: list[Failure] = []
    results: list[T] = []
    deferred.addCallbacks(results.append, failures.append)
    _turn_until(clock, lambda: bool(results or failures))
    if failures:
        failures[0].raiseException()


def _turn_until(clock: Clock, is_done: Callable[[], bool]) -> None:
    for _ in range(_MOST_TURNS):
        if is_done():
            return
        clock.advance(_TURN_S)
    raise Unavailable("the queue does not come to rest")
