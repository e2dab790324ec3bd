"""Reloading: the configuration is read again while the server runs, and taken over as a whole or not at all.

*Rules*: nothing is raised. Files are read, checked and made into objects in a thread; what is left for the reactor's thread
is quick and cannot fail. A file that is bad, that changes what a running server can't (`changes`), or that the server
can't take over, leaves everything as it was; the log says why, and where in the file. One reload is under way at a time, and
however often it is asked for meanwhile, one more follows. A file that does not answer is named, and its thread left behind:
there is no other until it answers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.read.changes import SettingChange, names_of, what_changed
from mailismus.config.read.load import LoadedConfig, Loader
from mailismus.disk.worker import IWorker
from mailismus.errors import ConfigError
from mailismus.start.server import Server

MAX_NAMED = 10
"""Settings that one refusal names."""
LOOK_S = 1.0
"""How often it is looked whether a file hangs."""
_KEPT = "the old configuration stays in force"


class State(enum.Enum):
    """What the one thread does."""

    IDLE = "nothing"
    READING = "reads"
    ASKED_AGAIN = "reads, and will read again"
    HANGING = "waits for a file that does not answer"
    STOPPED = "what it reads is no longer wanted"


class Loading(Protocol):
    """Reads the configuration."""

    def load(self) -> LoadedConfig:
        """Read it. Blocks. Raises `ConfigError`."""

    def find_hanging(self) -> ConfigError | None:
        """What to say of a file that `load` waits for in vain."""


@attrs.frozen
class OneFile:
    """One configuration file, read again and again."""

    loader: Loader
    path: str

    def load(self) -> LoadedConfig:
        """See `Loading`."""
        return self.loader.load(self.path)

    def find_hanging(self) -> ConfigError | None:
        """See `Loading`."""
        return self.loader.find_hanging()


@attrs.frozen
class _Found:
    """What a reading came to. `take_over` None: a setting changed that can't."""

    loaded: LoadedConfig
    changes: Sequence[SettingChange]
    take_over: Callable[[], None] | None


class Reloader:
    """Reloads one server. `loading` reads the file that `loaded` came from."""

    _log = Logger()

    def __init__(self, loaded: LoadedConfig, loading: Loading, server: Server, worker: IWorker, clock: IReactorTime) -> None:
        self._loaded, self._loading, self._server = loaded, loading, server
        self._worker, self._clock = worker, clock
        self._state = State.IDLE
        self._timer: IDelayedCall | None = None
        self._over: Deferred[None] = succeed(None)

    def reload(self) -> Deferred[None] | None:
        """Read the file and take it over, if it is well. Fires when that is over; None: what fired last and has not yet
        fired is for this too."""
        match self._state:
            case State.IDLE:
                self._over = Deferred()
                over = self._over
                self._begin()
                return over
            case State.READING | State.ASKED_AGAIN:
                self._state = State.ASKED_AGAIN
                return None
            case State.HANGING:
                hanging = self._loading.find_hanging()
                self._refuse(str(hanging) if hanging else "the reload before this one is not yet over")
                return succeed(None)
            case State.STOPPED:
                return None

    def stop(self) -> None:
        """Take nothing over any more. What is being read is not waited for."""
        self._state = State.STOPPED
        self._end_timer()

    def _begin(self) -> None:
        self._state = State.READING
        self._timer = self._clock.callLater(LOOK_S, self._look)
        self._worker.start()  # here, behind the fork of a daemon
        self._worker.run(self._find).addBoth(self._found)

    def _find(self) -> _Found:
        """In the thread: all that may block, take long or fail."""
        new = self._loading.load()
        changes = what_changed(self._loaded.effective, new.effective)
        is_fixed = any(change.is_fixed for change in changes)
        return _Found(new, changes, None if is_fixed else self._server.prepare(new.settings))

    def _look(self) -> None:
        hanging = self._loading.find_hanging()
        if hanging is None:
            self._timer = self._clock.callLater(LOOK_S, self._look)
            return
        self._timer = None
        self._state = State.HANGING
        self._refuse(str(hanging))
        self._over.callback(None)

    def _found(self, found: _Found | Failure) -> None:
        self._end_timer()
        match self._state:
            case State.HANGING:
                self._state = State.IDLE
                self._log.info("Every file of the configuration answers again; send SIGHUP to reload it")
            case State.READING:
                self._act(found)
                self._state = State.IDLE
                self._over.callback(None)
            case State.ASKED_AGAIN:
                self._act(found)
                self._begin()
            case _:
                pass

    def _act(self, found: _Found | Failure) -> None:
        if isinstance(found, Failure):
            if isinstance(found.value, ConfigError):
                self._refuse(str(found.value))
            else:  # a bug of ours, or no memory: the server goes on as it was
                self._log.failure("The configuration was not reloaded; {kept}", found, kept=_KEPT)
        elif found.take_over is None:
            self._refuse_fixed(found)
        else:
            self._take_over(found, found.take_over)

    def _take_over(self, found: _Found, take_over: Callable[[], None]) -> None:
        try:
            take_over()
        except Exception:  # a bug of ours
            self._log.failure("The new configuration was taken over in part only: restart the server")
            return
        self._loaded = found.loaded
        for note in found.loaded.notes:
            self._log.warn("{note}", note=note)
        names = ", ".join(names_of(found.changes)) or "nothing changed"
        self._log.info("reloaded: {names}", names=names)

    def _refuse_fixed(self, found: _Found) -> None:
        fixed = [change for change in found.changes if change.is_fixed]
        for change in fixed[:MAX_NAMED]:
            text = f"{change} can't change while the server runs: restart it, or write the old value"
            self._log.error("{error}", error=str(ConfigError(found.loaded.settings.file, change.line, text)))
        self._log.error("The configuration was not reloaded; {kept}", kept=_KEPT)

    def _refuse(self, text: str) -> None:
        self._log.error("{error}; {kept}", error=text, kept=_KEPT)

    def _end_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
