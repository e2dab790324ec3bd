"""A queue of chunks of a server: locked and opened at its start, with the threads that do its blocking calls."""

from __future__ import annotations

import time
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorTime

from mailismus.chunks.generator import process_generator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.observe.metrics import meter
from mailismus.queue.opened import OpenedLocalQueue
from mailismus.queue.provider import IsLocal
from mailismus.queue.providers.chunk.assembly import build
from mailismus.queue.providers.chunk.control.workers import ChunkWorkers
from mailismus.queue.providers.chunk.metrics import METRICS, ChunkFigures
from mailismus.queue.providers.chunk.recovery.opening import open_chunks
from mailismus.queue.providers.chunk.signal import ChunkSignal
from mailismus.queue.reactor import QueueReactor

FILE_THREADS = 4
"""Threads for contents of large messages, and for reading."""
ACT_SHARE = 0.03
"""As `IOpenedQueue.act_share`: each message that an act changes has files of its own to write, and their barrier holds up
what is delivered meanwhile. With 0.05 acts left 0.87 of the deliveries."""


def open_chunk_queue(settings: QueueSettings, reactor: QueueReactor, is_local: IsLocal) -> OpenedChunkQueue:
    """Lock and open the queue. Raises `StartError`."""
    disk = PosixDisk()
    threads = (ThreadPool(reactor, "chunks"), ThreadPool(reactor, "ends", 2), ThreadPool(reactor, "files", FILE_THREADS))
    opened = open_chunks(settings, disk, settings.conf_split)
    try:
        # Timers use the reactor's clock, which does not jump; stored times are times of day.
        timers = cast(IReactorTime, reactor)
        workers, generator = ChunkWorkers(*threads), process_generator()
        queue = build(settings, disk, opened, workers, timers, time.time, is_local, generator)
    except BaseException:
        opened.release()
        raise
    figures, metrics, root = ChunkFigures(queue), meter(METRICS, queue), settings.rootpath
    local = OpenedLocalQueue(queue, figures, metrics, threads, opened.release, root, ACT_SHARE)
    return OpenedChunkQueue(local, ChunkSignal(settings.rootpath, cast(IReactorFDSet, reactor), queue.parts.adoption.look))


class OpenedChunkQueue:
    """An `IOpenedQueue` on local files that other programs may write into."""

    def __init__(self, local: OpenedLocalQueue, signal: ChunkSignal) -> None:
        self._local, self._signal = local, signal
        self.queue, self.figures, self.state_path = local.queue, local.figures, local.state_path
        self.metrics, self.release, self.sharing = local.metrics, local.release, local.sharing
        self.act_share = local.act_share

    def begin(self) -> Deferred[None]:
        return self._local.begin().addCallback(lambda _: self._signal.start())

    def end(self) -> None:
        self._signal.stop()
        self._local.end()
