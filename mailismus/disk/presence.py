"""Presence: whether the names of what was opened still lead to it.

What is open can be written and synced when its name is gone; whoever looks for it after a crash finds nothing. So who
promises that something is on disk looks now and then whether it can be found there.

Blocking: called in worker threads.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

import attrs

from mailismus.disk.interface import IDisk, ILock, INamed, NameKind, NameStanding


class Missing(OSError):
    """A name of ours does not lead to what was opened under it, or nobody can tell. Nothing was written.

    The text says what is missing and what to do.
    """

    def __init__(self, path: str, text: str) -> None:
        """`path`: under which it was opened."""
        super().__init__(errno.ENOENT, text)
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class AnyDirectory:
    """Whatever directory has a name: no descriptor is kept for it."""

    _disk: IDisk
    _lock: ILock | None = None
    """A lock in it, `lock`, which went the way of a directory that is not there."""

    def standing(self, path: str) -> NameStanding:
        """As `INamed`; without a lock nobody knows of a directory that is not there whether it was removed."""
        try:
            if self._disk.describe(path).kind is NameKind.DIRECTORY:
                return NameStanding.NAMED
        except (FileNotFoundError, NotADirectoryError):
            pass
        return self._lock.standing(f"{path}/lock") if self._lock is not None else NameStanding.MOVED


@attrs.frozen
class Presence:
    """What must be where it was opened, by the paths that it was opened under, outermost first."""

    directories: Mapping[str, INamed]
    locks: Mapping[str, INamed]

    def check(self) -> None:
        """Raises `Missing` for the first that is not there."""
        for path, opened in self.directories.items():
            _look(
                path, opened, "what this server knows and has not delivered is nowhere else; stop it when that is delivered"
            )
        for path, opened in self.locks.items():
            _look(path, opened, "another server could begin to work here; stop this one")


def _look(path: str, opened: INamed, if_removed: str) -> None:
    try:
        standing = opened.standing(path)
    except OSError as error:
        raise Missing(path, f"{path} can't be looked at: {error.strerror or error}") from error
    if standing is NameStanding.MOVED:
        what = f"{path} was moved away, or something else was put or mounted in its place"
        raise Missing(path, f"{what}; move it back or, where nothing can be moved back, stop this server and start it again")
    if standing is NameStanding.REMOVED:
        raise Missing(path, f"{path} was removed: {if_removed}, and start it again")
