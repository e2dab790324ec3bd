"""Reloading: the configuration is read again while the server runs, and taken over as a whole or not at all.

*Rules*: nothing is raised. A file that is bad, that changes what a running server can't (`config.changes`), or that the
server can't take over, leaves everything as it was; the log says why, and where in the file.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import Logger

from mailismus.config.changes import names_of, what_changed
from mailismus.config.load import Loaded
from mailismus.errors import ConfigError
from mailismus.start.server import Server

MAX_NAMED = 10
"""Settings that one refusal names."""
_KEPT = "the old configuration stays in force"


class Reloader:
    """Reloads one server. `load` reads the file that `loaded` came from; it may block for as long as reading it takes."""

    _log = Logger()

    def __init__(self, loaded: Loaded, load: Callable[[], Loaded], server: Server) -> None:
        self._loaded, self._load, self._server = loaded, load, server

    def reload(self) -> None:
        """Read the file and take it over, if it is well."""
        try:
            self._reload()
        except ConfigError as error:
            self._log.error("{error}; {kept}", error=str(error), kept=_KEPT)
        except Exception:  # a bug of ours, or no memory: the server goes on as it was
            self._log.failure("The configuration was not reloaded; {kept}", kept=_KEPT)

    def _reload(self) -> None:
        new = self._load()
        changes = what_changed(self._loaded.effective, new.effective)
        fixed = [change for change in changes if change.is_fixed]
        for change in fixed[:MAX_NAMED]:
            text = f"{change} can't change while the server runs: restart it, or write the old value"
            self._log.error("{error}", error=str(ConfigError(new.settings.file, change.line, text)))
        if fixed:
            self._log.error("The configuration was not reloaded; {kept}", kept=_KEPT)
            return
        self._server.reload(new.settings)
        self._loaded = new
        for note in new.notes:
            self._log.warn("{note}", note=note)
        names = ", ".join(names_of(changes)) or "nothing changed"
        self._log.info("reloaded: {names}", names=names)
