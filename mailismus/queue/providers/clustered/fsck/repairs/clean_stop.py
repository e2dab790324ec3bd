"""A start and a clean stop of the server's own queue, without a server: what ends a repair.

It is what sees to everything that a start sees to, with the code of the start: clusters of a checkpoint that never came to
its end, tails, marks that are owed, strays. Nothing is delivered, for nobody asks for mail.
"""

from __future__ import annotations

import os

from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.worker import Workers
from mailismus.errors import Unavailable
from mailismus.journal.opening import JournalOpener
from mailismus.journal.writer import RandomBytes
from mailismus.queue.fsck.turns import TurnWorker, turn_until, wait_for
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.recovery.opening import open_locked


def opener_without_reactor(settings: QueueSettings, disk: IDisk, random_bytes: RandomBytes) -> JournalOpener:
    """An opener of the queue's journal that does all of its work at once."""
    clock, directory = Clock(), os.path.join(settings.rootpath, "journal")
    return JournalOpener(disk, directory, settings.journal, TurnWorker(clock), clock, random_bytes)


def start_and_stop(settings: QueueSettings, disk: IDisk, locks: list[ILock], random_bytes: RandomBytes, now: float) -> None:
    """Start the server's queue and stop it cleanly; the locks of queue and spool, which are held, are released. Raises
    `StartError`, `StorageError`, OSError."""
    clock = Clock()
    worker = TurnWorker(clock)
    opened = open_locked(settings, disk, locks, worker, clock, random_bytes)
    try:
        queue = build(settings, disk, opened, Workers(worker, worker), clock, lambda: now + clock.seconds())
        wait_for(clock, queue.open())
        scan = queue.parts.release.scan
        turn_until(clock, lambda: scan.has_failed or (scan.has_run and not scan.is_running))
        abandoned = queue.checkpoints.counts.abandoned
        wait_for(clock, queue.checkpoints.run_over_all())
        wait_for(clock, queue.close())
        if scan.has_failed or queue.checkpoints.counts.abandoned > abandoned:
            raise Unavailable("what was repaired is in the journal, but could not be written behind; see the log")
    finally:
        opened.release()
        opened.close_files()
