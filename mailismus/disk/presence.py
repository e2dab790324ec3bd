"""Presence: whether the names of open objects still lead to them.

An open file can be written and synced after its name is gone, but nobody finds it after a crash. So code that promises
durable bytes checks regularly that their names exist.

Blocks: call it in worker threads.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

import attrs

from mailismus.disk.interface import IDisk, ILock, INamed, NameKind, NameStanding


class Missing(OSError):
    """A name of ours does not lead to the object opened under it, or that can't be found out. Nothing was written.

    The text says which name is missing and what to do.
    """

    def __init__(self, path: str, text: str) -> None:
        """`path`: the name under which it was opened."""
        super().__init__(errno.ENOENT, text)
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class AnyDirectory:
    """Any directory of a name: no descriptor of it is kept open."""

    _disk: IDisk
    _lock: ILock | None = None
    """A lock in that directory, named `lock`; it tells whether a missing directory was moved or removed."""

    def standing(self, path: str) -> NameStanding:
        """As `INamed`. Without a lock a missing directory counts as moved, for nobody knows whether it was removed."""
        try:
            if self._disk.describe(path).kind is NameKind.DIRECTORY:
                return NameStanding.NAMED
        except (FileNotFoundError, NotADirectoryError):
            pass
        return self._lock.standing(f"{path}/lock") if self._lock is not None else NameStanding.MOVED


@attrs.frozen
class Presence:
    """Open objects that must keep their names, by the paths under which they were opened, outermost first."""

    directories: Mapping[str, INamed]
    locks: Mapping[str, INamed]

    def check(self) -> None:
        """Raise `Missing` for the first name that does not lead to its object."""
        for path, opened in self.directories.items():
            _check_name(
                path, opened, "what this server knows and has not delivered is nowhere else; stop it when that is delivered"
            )
        for path, opened in self.locks.items():
            _check_name(path, opened, "another server could begin to work here; stop this one")


def _check_name(path: str, opened: INamed, if_removed: str) -> None:
    try:
        standing = opened.standing(path)
    except OSError as error:
        raise Missing(path, f"{path} can't be looked at: {error.strerror or error}") from error
    if standing is NameStanding.MOVED:
        change = f"{path} was moved away, or something else was put or mounted in its place"
        raise Missing(
            path, f"{change}; move it back or, where nothing can be moved back, stop this server and start it again"
        )
    if standing is NameStanding.REMOVED:
        raise Missing(path, f"{path} was removed: {if_removed}, and start it again")
