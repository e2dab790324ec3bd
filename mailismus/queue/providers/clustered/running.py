"""A clustered queue of a server: locked and opened at its start, with the threads that do its blocking calls."""

from __future__ import annotations

import os
import time
from typing import cast

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool, Workers
from mailismus.observe.metrics import meter
from mailismus.queue.opened import OpenedLocalQueue
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.metrics import METRICS, ClusteredFigures
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from mailismus.queue.reactor import QueueReactor
from mailismus.queue.throttle import WorkClocks

FILE_THREADS = 4
"""Threads for message files and everything of the disk but the journal's barrier."""


def open_clustered_queue(settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime) -> OpenedLocalQueue:
    """Lock and open the queue. `clock`: timers beside the time of day. Raises `StartError`."""
    disk = PosixDisk()
    threads = (ThreadPool(reactor, "journal"), ThreadPool(reactor, "files", FILE_THREADS))
    opened = open_queue(settings, disk, threads[1], clock, os.urandom)
    try:
        # Timers use the reactor's clock, which does not jump; stored times are times of day.
        timers = cast(IReactorTime, reactor)
        clocks = WorkClocks.of_process(timers)
        queue = build(settings, disk, opened, Workers(*threads), timers, time.time, clocks)
    except BaseException:
        opened.release()
        raise
    return OpenedLocalQueue(
        queue, ClusteredFigures(queue), meter(METRICS, queue), threads, opened.release, settings.rootpath
    )
