"""The web page of a running server, from its start to its end.

*Rules*: whatever can refuse a start is tried by `WebPort`. Nothing here is needed for mail: what fails later is logged.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IListeningPort, IReactorSocket, IReactorTime
from twisted.logger import Logger

from mailismus.admin.server.answers import LookableQueue
from mailismus.admin.server.overview import NewOverview
from mailismus.config.values.names import format_host_port
from mailismus.config.values.settings import WebSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import SecretError, StartError
from mailismus.net import listen
from mailismus.secret_file import read_secret
from mailismus.web.history.recorder import Recorder
from mailismus.web.pictures import Pictures
from mailismus.web.search import Searches
from mailismus.web.site import Site
from mailismus.web.wire.channel import WebConnections
from mailismus.web.wire.guard import WebGuard
from mailismus.web.wire.password import Password

_KEY_BYTES = 32


class WebPort:
    """The listening sockets, bound before there is anything to show. `guard`: who may ask. `host`: the name that the server
    announces."""

    def __init__(self, settings: WebSettings, host: str) -> None:
        """Read the password and bind the sockets. Raises `StartError`."""
        self._host = host
        self.guard = self.make_guard(settings)
        self._bound = listen.bind("web", settings.interface, settings.port)

    def make_guard(self, settings: WebSettings) -> WebGuard:
        """Who may ask by these settings. Blocks. Raises `StartError`."""
        names = (*settings.names, *(() if settings.is_loopback else (self._host,)))
        if settings.password is None:
            return WebGuard(names, None, is_loopback=settings.is_loopback)
        try:
            secret = read_secret(settings.password.path).secret
        except SecretError as error:
            raise StartError(os.EX_CONFIG, f"{settings.password.path} can't be used: {error}", "admin/web") from None
        try:
            password = Password(settings.username, secret, os.urandom(_KEY_BYTES))
        finally:
            secret.wipe()
        return WebGuard(names, password, is_loopback=settings.is_loopback)

    def release(self) -> list[listen.ListeningSocket]:
        """Hand the sockets over."""
        bound, self._bound = self._bound, []
        return bound

    def close(self) -> None:
        """Give the sockets up."""
        listen.close_all(self.release())


class WebTask:
    """The page at a port."""

    _log = Logger()

    def __init__(
        self,
        port: WebPort,
        queue: LookableQueue,
        overviews: NewOverview,
        state_path: str | None,
        disk: IDisk,
        worker: IWorker,
        sockets: IReactorSocket,
        clock: IReactorTime,
        monotonic: Callable[[], float],
    ) -> None:
        """`state_path`: the directory of state files; None: there is none. `worker`: one thread of its own. `clock`: UTC
        seconds."""
        self._port, self._sockets = port, sockets
        pictures = Pictures(overviews)
        self._recorder = Recorder(pictures.take, state_path, disk, worker, clock)
        self._recorder.load()
        site = Site(
            pictures,
            self._recorder,
            Searches(queue, clock, monotonic),
            lambda domain: tuple(queue.explanations().of_domain(domain)),
            clock,
            monotonic,
        )
        self._connections = WebConnections(site.respond, port.guard, clock)
        self._listening: list[IListeningPort] = []

    def start(self) -> None:
        """Serve, in the process that will go on, and record the history."""
        self._recorder.start()
        for one in self._port.release():
            adopt = self._sockets.adoptStreamPort
            self._listening.append(adopt(one.bound.fileno(), one.family, self._connections))  # type: ignore[arg-type]  # a private type is wanted
            one.bound.close()
            self._log.info("The web page is at http://{endpoint}/", endpoint=format_host_port((one.host, one.port)))

    def prepare(self, settings: WebSettings) -> Callable[[], None]:
        """Read the password again, in a thread; the result judges by it. Raises `StartError`."""
        guard = self._port.make_guard(settings)
        return lambda: self._connections.change_guard(guard)

    def close(self) -> None:
        """Give up what was bound: the server does not start."""
        self._port.close()

    def stop(self) -> Deferred[None]:
        """Answer nobody any more, and write the history. Fires when that is done."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        stopped = [done for port in self._listening if isinstance(done := port.stopListening(), Deferred)]
        self._listening.clear()
        for connection in list(self._connections.open):
            connection.cut_off()
        await DeferredList(stopped)
        await self._recorder.stop()
