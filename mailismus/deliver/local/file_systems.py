"""File systems of maildirs, by the mount table: known without asking a file system that may hang.

*Rules*: the mount table is read in a thread, at most once every `MOUNTS_AGE_S`, and forgotten when no delivery is slow.
"""

from __future__ import annotations

import os

from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.deliver.local.deposit import Deposits
from mailismus.disk.worker import IWorker
from mailismus.maildir.mounts import Mounts, read_mounts

MOUNTS_AGE_S = 60.0


class FileSystems:
    """Finds the file system of a user's maildir."""

    _log = Logger()

    def __init__(self, deposits: Deposits, workers: IWorker) -> None:
        self._deposits, self._workers = deposits, workers
        self._mounts = Mounts()
        self._read_at: float | None = None
        self._known: dict[bytes, bytes | None] = {}
        """File system of each user, found in the mount table."""

    @property
    def is_known(self) -> bool:
        """Whether the mount table was read, or is being read."""
        return self._read_at is not None

    def of(self, user: bytes) -> bytes | None:
        """Return the file system of this user's maildir; None: not known."""
        if self._read_at is None:
            return None
        if user not in self._known:
            path = os.path.abspath(self._deposits.maildir_of(user))
            self._known[user] = self._mounts.file_system_of(os.fsencode(path))
        return self._known[user]

    def clear(self) -> None:
        """Forget the file system of each user: the maildirs may have moved."""
        self._known.clear()

    def read(self, now: float) -> None:
        """Read the mount table, unless it was read in the last `MOUNTS_AGE_S`. `now`: monotonic seconds."""
        if self._read_at is None or now - self._read_at >= MOUNTS_AGE_S:
            self._read_at = now
            self._workers.run(read_mounts).addCallbacks(self._adopt, self._read_failed)

    def forget(self) -> None:
        """Forget the mount table."""
        self._mounts, self._read_at = Mounts(), None
        self._known.clear()

    def _adopt(self, mounts: Mounts) -> None:
        self._mounts = mounts
        self._known.clear()

    def _read_failed(self, failure: Failure) -> None:
        self._log.failure("The mount table can't be read", failure)
