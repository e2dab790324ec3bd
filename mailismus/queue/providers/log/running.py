"""A log-structured queue of a server: locked and opened at its start, with the threads that do its blocking calls."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool, Workers
from mailismus.observe.metrics import Reader, meter
from mailismus.queue.files.state_file import DIRECTORY
from mailismus.queue.provider import QueueReactor
from mailismus.queue.providers.log.assembly import build
from mailismus.queue.providers.log.metrics import METRICS, LogFigures
from mailismus.queue.providers.log.recovery.opening import open_queue

FILE_THREADS = 4
"""Threads for everything of the disk but the barriers of batches."""


class OpenedLogQueue:
    """An `IOpenedQueue`. `clock`: timers beside the time of day."""

    def __init__(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime) -> None:
        """Lock and open the queue. Raises `StartError`."""
        disk = PosixDisk()
        self._threads = (ThreadPool(reactor, "log"), ThreadPool(reactor, "files", FILE_THREADS))
        self._opened = open_queue(settings, disk, self._threads[1], clock, os.urandom)
        try:
            # Timers use the reactor's clock, which does not jump; stored times are times of day.
            timers = cast(IReactorTime, reactor)
            self.queue = build(settings, disk, self._opened, Workers(*self._threads), timers, time.time)
        except BaseException:
            self._opened.release()
            raise
        self.figures = LogFigures(self.queue)
        self.state_path: str | None = os.path.join(settings.rootpath, DIRECTORY)

    def metrics(self) -> Sequence[Reader]:
        return meter(METRICS, self.queue)

    def begin(self) -> Deferred[None]:
        for thread in self._threads:
            thread.start()
        return self.queue.open()

    def end(self) -> None:
        for thread in self._threads:
            thread.stop()

    def release(self) -> None:
        self._opened.release()
