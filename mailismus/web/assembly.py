"""The page of a configuration: made only where `<web>` is written. Without it the server imports nothing else of this
package, nor the libraries that it needs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IReactorFromThreads, IReactorSocket, IReactorTime

from mailismus.admin.server.overview import NewOverview
from mailismus.config.values.settings import Settings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.queue.manager import QueueManager
from mailismus.queue.provider import IOpenedQueue

if TYPE_CHECKING:
    from mailismus.web.task import WebPort, WebTask


def bind_web(settings: Settings) -> WebPort | None:
    """Bind what will listen for browsers; None: `<web>` is not written. Raises `StartError`."""
    if settings.admin.web is None:
        return None
    from mailismus.web.task import WebPort  # here, where a start can be refused

    return WebPort(settings.admin.web, settings.application.announcehost.decode("ascii", "replace"))


def web_task_of(
    port: WebPort | None,
    opened: IOpenedQueue,
    manager: QueueManager,
    overviews: NewOverview,
    threads: IReactorFromThreads,
    sockets: IReactorSocket,
    clock: IReactorTime,
) -> WebTask | None:
    """Return the page at this port; None: there is none."""
    if port is None:
        return None
    from mailismus.web.task import WebTask  # as above

    worker = ThreadPool(threads, "web")
    return WebTask(port, manager, overviews, opened.state_path, PosixDisk(), worker, sockets, clock, time.monotonic)
