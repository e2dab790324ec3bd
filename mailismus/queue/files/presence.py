"""Presence: once a second, check that directories, locks and journal of the queue are where they were opened.

A file that was moved away or removed under the running server can still be written, but a restart would not find it. So no
mail is taken (451) while something is missing; known entries are delivered. When it is back, the server accepts mail again.

*Rules*: durability rests on the check before a batch (`journal.writer`). This check refuses mail before its content is sent,
keeps checkpoints from writing to files that are not there, and logs what is missing.
"""

from __future__ import annotations

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.presence import Missing, Presence
from mailismus.disk.worker import IWorker
from mailismus.journal.commit import GroupCommit

INTERVAL_S = 1.0
"""Seconds between two checks."""

HANGS_LOOKS = 20
"""Intervals that one check may last. A directory that does not answer until then is treated as missing."""


class PresenceWatch:
    """Checks once a second. `presence`: of all directories and locks; `commits` checks the journal's files."""

    _log = Logger()

    def __init__(self, presence: Presence, commits: GroupCommit, worker: IWorker, reactor: IReactorTime) -> None:
        self._presence = presence
        self._commits = commits
        self._worker = worker
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._missing: Missing | None = None
        self._waited = 0
        """Intervals since the check began that is still under way."""
        self._is_looking = False
        self._is_told = False

    @property
    def missing(self) -> Missing | None:
        """The directory or file that is not where it was opened, or does not answer; None: all are there."""
        return self._commits.missing or self._missing

    def start(self) -> None:
        """Begin to check."""
        self._timer = self._reactor.callLater(INTERVAL_S, self._look)

    def stop(self) -> None:
        """Check no more; the journal checks before its next batch."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._commits.look_for_files()

    def on_stopped(self, young: int, resting: int, root: str, journal: str) -> None:
        """The queue, which lies at these paths, is closed: say what can't be found there. `young`: messages in the journal;
        `resting`: entries in clusters."""
        missing = self.missing
        if missing is None:
            return
        known = f"{young} messages of the journal" if missing.path in (root, journal) else ""
        if missing.path == root:
            known += f" and {resting} entries of clusters"
        lost = f" {known} were known and have no name there: without what was there they are lost." if known else ""
        self._log.error("Stopped while something is missing: {missing}.{lost}", missing=missing, lost=lost)

    def _look(self) -> None:
        self._timer = self._reactor.callLater(INTERVAL_S, self._look)
        self._commits.look_for_files()
        if not self._is_looking:
            self._is_looking, self._waited = True, 0
            self._worker.run(self._presence.check).addCallbacks(self._on_looked, self._on_failed)
            return
        self._waited += 1
        if self._waited >= HANGS_LOOKS:
            path = next(iter(self._presence.directories), "")
            text = f"directories of the queue at {path} or of its spool do not answer: a disk or a file system hangs"
            self._found(Missing(path, text))

    def _on_looked(self, _: None) -> None:
        self._is_looking = False
        self._found(None)

    def _on_failed(self, failure: Failure) -> None:
        self._is_looking = False
        if not isinstance(failure.value, Missing):
            self._log.failure("Looking for the queue's directories failed", failure)
            return
        self._found(failure.value)

    def _found(self, missing: Missing | None) -> None:
        self._missing = missing
        self._commits.bar(missing)
        if self.missing is None:
            if self._is_told:
                self._log.info("The queue is where it was opened again; mail is accepted.")
        elif not self._is_told:
            self._log.error("No mail is accepted: {missing}.", missing=self.missing)
        self._is_told = self.missing is not None
