"""A queue on local files that a start has locked and opened, with the threads that do its blocking calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred

from mailismus.disk.worker import ThreadPool
from mailismus.observe.metrics import Reader
from mailismus.queue.files.state_file import DIRECTORY
from mailismus.queue.interface import IQueue
from mailismus.queue.provider import IQueueFigures
from mailismus.queue.sharing import ISharing
from mailismus.queue.throttle import ACT_SHARE


class OpenedLocalQueue:
    """An `IOpenedQueue`. `release`: gives up the locks of a queue that was never begun. `rootpath`: of the queue."""

    def __init__(
        self,
        queue: IQueue,
        figures: IQueueFigures,
        metrics: Sequence[Reader],
        threads: Sequence[ThreadPool],
        release: Callable[[], None],
        rootpath: str,
        act_share: float = ACT_SHARE,
    ) -> None:
        self.queue, self.figures, self.act_share = queue, figures, act_share
        self.state_path: str | None = os.path.join(rootpath, DIRECTORY)
        self.sharing: ISharing | None = None
        self._metrics, self._threads, self._release = metrics, threads, release

    def metrics(self) -> Sequence[Reader]:
        return self._metrics

    def begin(self) -> Deferred[None]:
        for thread in self._threads:
            thread.start()
        return self.queue.open()

    def end(self) -> None:
        for thread in self._threads:
            thread.stop()

    def release(self) -> None:
        self._release()
