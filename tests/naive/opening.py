"""Opening the naive queue."""

from __future__ import annotations

import os

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import StartError
from mailismus.queue.files.mark import Mark, ensure_mark
from tests.naive.provider import NaiveQueue

NAME, FORMAT = "naive", 1


def open_naive(settings: QueueSettings, disk: IDisk, worker: IWorker, clock: IReactorTime) -> NaiveQueue:
    """Lock and read the queue. Raises `StartError`."""
    root = settings.rootpath
    try:
        if not disk.exists(root):
            disk.make_directory(root)
        lock = disk.lock(os.path.join(root, "lock"))
        if lock is None:
            raise StartError(os.EX_TEMPFAIL, f"another server holds {root}")
        ensure_mark(disk, root, Mark(NAME, FORMAT))
        return NaiveQueue(disk, root, lock, worker, clock)
    except (OSError, ValueError) as error:
        raise StartError(os.EX_IOERR, f"the queue can't be opened: {error}") from error
