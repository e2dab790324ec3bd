"""Assembly: the acts of an open queue, made of its settings and of what its file tells."""

from __future__ import annotations

import os

from twisted.internet.interfaces import IReactorFromThreads, IReactorTime

from mailismus.config.values.settings import Settings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.errors import StartError
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts, KeepSettings
from mailismus.queue.manager import QueueManager
from mailismus.queue.provider import IOpenedQueue
from mailismus.queue.throttle import WorkClocks, WorkThrottle


def acts_of(
    settings: Settings, opened: IOpenedQueue, manager: QueueManager, threads: IReactorFromThreads, clock: IReactorTime
) -> Acts | None:
    """Return the acts of a queue, with what its file tells of them; None: it keeps no files of its own. Raises
    `StartError`."""
    if opened.state_path is None:
        return None
    file = ActFile(PosixDisk(), opened.state_path)
    throttle = WorkThrottle(WorkClocks.of_process(clock), opened.act_share)
    worker = ThreadPool(threads, "acts")
    acts = Acts(manager.acting, file, worker, clock, keep_of(settings), throttle, opened.sharing)
    try:
        acts.load()
    except OSError as error:
        raise StartError(os.EX_IOERR, f"{file.path} can't be read: {error}") from error
    return acts


def keep_of(settings: Settings) -> KeepSettings:
    """Return how long, and how much, deleted mail is kept."""
    return KeepSettings(settings.admin.undo_s, settings.admin.undospace_bytes)
