"""The service: the server as a child of Twisted's Application, from the fork to the end of the process.

*Rules*: nothing here refuses a start: `start.maker` has done that. A later failure is logged, and ends the process with a
code of ours. Signals (`start.signals`): SIGUSR1 reopens the logs; SIGHUP reloads the configuration (`start.reload`), once
mail is accepted; SIGTERM and SIGINT are the reactor's, which calls `stopService`; a second one changes nothing.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.application.service import IServiceCollection, Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ReactorNotRunning
from twisted.logger import ILogObserver, Logger
from twisted.python.components import Componentized
from twisted.python.failure import Failure

from mailismus.errors import StartError
from mailismus.start.exits import end_with, exit_code_of
from mailismus.start.logfile import Log
from mailismus.start.notify import Notifier
from mailismus.start.server import Listening, Reactor, Server
from mailismus.start.signals import Signals


class Reloads(Protocol):
    """Reloads on SIGHUP; implemented by `start.reload.Reloader`."""

    def reload(self) -> Deferred[None] | None:
        """Reload. Fires when it is over; None: an earlier Deferred that has not fired covers this call too."""

    def stop(self) -> None:
        """Apply no further configuration."""


class MailismusService(Service):
    """Starts and stops one server."""

    _log = Logger()

    def __init__(
        self,
        server: Server,
        reactor: Reactor,
        log: Log,
        notes: Sequence[str],
        reloader: Reloads,
        signals: Signals,
        end: Callable[[int], None] = end_with,
        *,
        notifier: Notifier | None = None,
        locate: Callable[[StartError], Exception] = lambda error: error,
    ) -> None:
        self.setName("mailismus")
        self._server = server
        self._reactor = reactor
        self._maillog, self._destination = log.maillog, log.destination
        self._notes = notes
        self._reloader = reloader
        self._signals = signals
        self._end = end
        self._notifier = notifier or Notifier(reactor, {})
        self._locate = locate
        self._status = ""
        self._stopping = self._is_ready = self._is_reload_due = False

    def setServiceParent(self, parent: IServiceCollection) -> None:
        """Join the Application, and replace twistd's log by ours."""
        super().setServiceParent(parent)
        if self._destination is not None and isinstance(parent, Componentized):
            parent.setComponent(ILogObserver, self._destination)

    def startService(self) -> None:
        """Begin as soon as the reactor runs, in the process that will serve."""
        super().startService()
        self._signals.serve(self._reactor, {signal.SIGUSR1: self._reopen, signal.SIGHUP: self._on_hup})
        if self._destination is not None:
            self._reactor.addSystemEventTrigger("after", "shutdown", self._destination.close)
        self._reactor.addSystemEventTrigger("after", "shutdown", self._notifier.close)
        self._reactor.callWhenRunning(self._begin)

    def stopService(self) -> Deferred[None]:
        """Stop the server; fires when everything has stopped."""
        super().stopService()
        if self._stopping:
            return succeed(None)
        self._stopping = True
        self._notifier.stopping()
        self._reloader.stop()
        self._signals.answer({signal.SIGTERM: self._log_stopping, signal.SIGINT: self._log_stopping})
        return self._server.stop().addErrback(self._log_failure)

    def _begin(self) -> None:
        for note in self._notes:
            self._log.warn("{note}", note=note)
        if not self._stopping:
            self._server.start().addCallbacks(self._announce_ready, self._give_up)

    def _announce_ready(self, listening: Sequence[Listening]) -> None:
        self._is_ready = True
        self._maillog.write(" ".join(["ready:", *map(str, listening)]).encode("ascii"))
        self._status = "accepts mail: " + " ".join(map(str, listening))
        self._notifier.ready(self._status)
        if self._destination is not None:
            self._destination.flush()
        if self._is_reload_due:
            self._on_hup()

    def _give_up(self, failure: Failure) -> None:
        if isinstance(failure.value, StartError):
            self._log.critical("The server can't start: {reason}", reason=str(self._locate(failure.value)))
        else:
            self._log.failure("The server can't start", failure)
        self._end(exit_code_of(failure.value or RuntimeError()))
        try:
            self._reactor.stop()
        except ReactorNotRunning:
            pass

    def _log_failure(self, failure: Failure) -> None:
        self._log.failure("The server did not stop cleanly", failure)

    def _reopen(self) -> None:
        self._server.reopen_logs()
        if self._destination is None:
            return
        try:
            self._destination.reopen()
        except OSError as error:
            self._log.error("The log can't be reopened, the old file is kept: {error}", error=str(error))
        else:
            self._log.info("The log was reopened")

    def _log_stopping(self) -> None:
        self._log.info("Already stopping")

    def _on_hup(self) -> None:
        if self._stopping:
            self._log_stopping()
        elif self._is_ready:
            self._notifier.reloading(time.monotonic())
            over = self._reloader.reload()
            if over is not None:
                over.addCallback(self._announce_reloaded)
        else:
            self._is_reload_due = True

    def _announce_reloaded(self, _: None) -> None:
        if not self._stopping:
            self._notifier.ready(self._status)
