"""A start and a clean stop of the server's own queue, without a server: what ends a repair.

The start sees to everything that a start sees to, with its own code. Then what lives in damaged segments is moved, and
rounds of marks remove these. Nothing is delivered, for nobody asks for mail.
"""

from __future__ import annotations

from collections.abc import Collection

from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.worker import Workers
from mailismus.errors import Unavailable
from mailismus.journal.opening import JournalOpener
from mailismus.journal.writer import RandomBytes
from mailismus.queue.fsck.turns import TurnWorker, turn_until, wait_for
from mailismus.queue.providers.log.assembly import build
from mailismus.queue.providers.log.recovery.opening import open_locked, opener_of

MOST_ROUNDS = 50
"""Rounds of marks at most: each moves what lives in damaged segments as far as memory has room."""


def opener_without_reactor(settings: QueueSettings, disk: IDisk, random_bytes: RandomBytes) -> JournalOpener:
    """An opener of the log that does all of its work at once."""
    clock = Clock()
    return opener_of(settings, disk, TurnWorker(clock), clock, random_bytes)


def start_and_stop(
    settings: QueueSettings,
    disk: IDisk,
    locks: list[ILock],
    random_bytes: RandomBytes,
    now: float,
    damaged: Collection[int],
    *,
    renews: bool,
) -> None:
    """Start the server's queue and stop it cleanly; the locks of queue and spool, which are held, are released. `damaged`:
    segments that are to be gone then; `renews`: the working suffix is to begin behind all that is there now. Raises
    `StartError`, `StorageError`, OSError."""
    clock = Clock()
    worker = TurnWorker(clock)
    opened = open_locked(settings, disk, locks, worker, clock, random_bytes)
    try:
        queue = build(settings, disk, opened, Workers(worker, worker), clock, lambda: now + clock.seconds())
        wait_for(clock, queue.open())
        parts = queue.parts
        wait_for(clock, parts.learning.learn())
        scan = parts.release.scan
        turn_until(clock, lambda: scan.has_failed or (scan.has_run and not scan.is_running))
        for number in damaged:
            if number in parts.segments.in_use():
                parts.segments.fail(number)
        if renews:
            parts.moves.move_on(parts.ledger.working)
        for _ in range(MOST_ROUNDS):
            queue.rounds.run()
            turn_until(clock, lambda: not queue.is_busy() and parts.commits.is_idle)
            if not parts.segments.failed and not parts.ledger.unmarked:
                break
        left = bool(parts.segments.failed)
        wait_for(clock, queue.close())
        if scan.has_failed or left:
            raise Unavailable("what was repaired is in the log, but a damaged segment is still needed; begin again")
    finally:
        opened.release()
        opened.close_files()
