"""Removal of message files, in a worker: a failure is counted and logged, and the bytes stay until the next start.

While some are removed, the next ones gather: to hand over a call costs about as much as to unlink a file.

*Not here*: when a file may go (`release`, `reference_scan`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import remove_every_name, remove_message_file, remove_names
from mailismus.spool.sweep import sweep_silo

MOST_GATHERED = 32
"""Files that wait for those under way at most; a call of its own removes so many beside them."""
_Act = tuple[SpoolId, Callable[[], object]]
"""The removal of some names of a message file."""


def _remove_all(acts: Sequence[_Act]) -> list[tuple[SpoolId, Exception]]:
    """Do all of them; return those that failed, and why."""
    failed: list[tuple[SpoolId, Exception]] = []
    for spool_id, act in acts:
        try:
            act()
        except Exception as error:  # the others are removed all the same
            failed.append((spool_id, error))
    return failed


class MessageRemoval:
    """Removes message files of one spool. `first_new`: the lowest spool id that this start may assign. `corrupt_path`: the
    quarantine."""

    _log = Logger()

    def __init__(self, disk: IDisk, root: str, worker: IWorker, first_new: SpoolId, corrupt_path: str) -> None:
        self._disk = disk
        self._root = root
        self._worker = worker
        self._first_new = first_new
        self.corrupt_path = corrupt_path
        self.is_careful = False
        """The quarantine had files when the last silo was swept."""
        self.unlinks_failed = 0
        self._gathered: list[_Act] = []
        self._under_way = 0
        """Calls of the worker that have not ended."""
        self._is_stopping = False

    def stop(self) -> None:
        """Gather no more: the worker is about to end."""
        self._is_stopping = True
        self._hand_over()

    def remove(self, spool_id: SpoolId) -> None:
        """Remove the file of a message that durably has no live entry left, under all its names."""
        act = remove_every_name if spool_id < self._first_new else remove_message_file
        self._unlink(spool_id, partial(act, self._disk, self._root, spool_id))

    def remove_written(self, spool_id: SpoolId, most: int) -> None:
        """Remove a file that an abandoned checkpoint wrote. `most`: the highest number of a recipient that may have a name
        of its own; 0: the file has the shared name."""
        self._unlink(spool_id, partial(remove_names, self._disk, self._root, spool_id, range(most + 1)))

    def remove_name(self, spool_id: SpoolId, number: int) -> None:
        """Remove the file name of a recipient whose entry has ended."""
        self._unlink(spool_id, partial(remove_message_file, self._disk, self._root, spool_id, number))

    def remove_link(self, spool_id: SpoolId, number: int, on_unlinked: Callable[[bool, SpoolId], None]) -> None:
        """As `remove_name`. For a message of an earlier start `on_unlinked` is told whether the name was there."""
        removed = self._worker.run(partial(remove_message_file, self._disk, self._root, spool_id, number))
        if spool_id < self._first_new:
            removed.addCallback(on_unlinked, spool_id)
        removed.addErrback(self._not_removed, spool_id)

    def sweep(self, silo: int, is_needed: Callable[[SpoolId, int], bool]) -> Deferred[int]:
        """Remove the strays of one silo; fire with their number. `is_needed` is called in the worker. Fails with OSError."""
        return self._worker.run(partial(self._sweep, silo, is_needed))

    def _sweep(self, silo: int, is_needed: Callable[[SpoolId, int], bool]) -> int:
        """Sweep one silo, in a worker. While the quarantine has files, a stray may belong to one of them, and is moved
        there."""
        self.is_careful = bool(self._disk.list_directory(self.corrupt_path))
        aside = self.corrupt_path if self.is_careful else ""
        return sweep_silo(self._disk, self._root, silo, self._first_new, is_needed, aside)

    def _unlink(self, spool_id: SpoolId, act: Callable[[], object]) -> None:
        self._gathered.append((spool_id, act))
        if not self._under_way or self._is_stopping or len(self._gathered) >= MOST_GATHERED:
            self._hand_over()

    def _hand_over(self) -> None:
        acts, self._gathered = self._gathered, []
        if acts:
            self._under_way += 1
            self._worker.run(partial(_remove_all, acts)).addCallbacks(self._ended, self._not_begun, errbackArgs=(acts,))

    def _ended(self, failed: Sequence[tuple[SpoolId, object]]) -> None:
        self._under_way -= 1
        for spool_id, error in failed:
            self._note_not_removed(spool_id, error)
        if not self._under_way:
            self._hand_over()

    def _not_begun(self, failure: Failure, acts: Sequence[_Act]) -> None:
        """The worker could not take the call."""
        self._ended([(spool_id, failure.value) for spool_id, _ in acts])

    def _not_removed(self, failure: Failure, spool_id: SpoolId) -> None:
        self._note_not_removed(spool_id, failure.value)

    def _note_not_removed(self, spool_id: SpoolId, error: object) -> None:
        self.unlinks_failed += 1
        self._log.warn("The message file of {spool_id} can't be removed: {error}", error=error, spool_id=f"{spool_id:016X}")
