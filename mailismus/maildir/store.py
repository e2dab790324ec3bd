"""The maildirs below a directory: opened without following symbolic links, their missing directories made. Blocks.

    userpath / USER / mailpath / tmp, new, cur

*Rules*: `userpath` is the administrator's and may be a symbolic link; below it none is followed, whatever a user made of his
directories. Missing directories are made (0700). Every directory on the way is synced into its parent before a process
delivers into a maildir for the first time: another process may have made it and been killed before it could. All missing
directories are made before the first of these syncs, and a delivery syncs its file before them, so that a file system with a
journal writes it once for all of them.

*Not here*: names and files in `tmp` and `new` (`delivery`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import attrs

from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.names import NameStrategy
from mailismus.disk.interface import IDirectory, IDisk

SUBDIRECTORIES = ("tmp", "new", "cur")
REMEMBERED = 50_000
"""Maildirs of which a process remembers that their directories are durable."""


@attrs.frozen
class OpenMaildir:
    """A maildir, and the directories in it that a delivery needs."""

    root: IDirectory
    tmp: IDirectory
    new: IDirectory
    _way: ExitStack
    """Closes the directories above."""
    _not_durable: list[tuple[IDirectory, bool]]
    """Directories that must be synced, from above, and whether something was made in each."""
    _on_durable: Callable[[], None]

    def make_durable(self) -> None:
        """Sync what may not be durable: on return the maildir's directories survive a power cut. Raises OSError."""
        while self._not_durable:
            directory, is_made = self._not_durable[0]
            _sync(directory, is_made=is_made)
            del self._not_durable[0]
        self._way.close()
        self._on_durable()

    def close(self) -> None:
        """Close them. Harmless when repeated; never fails."""
        self._way.close()
        self.tmp.close()
        self.new.close()
        self.root.close()


class MaildirStore:
    """Opens maildirs. Safe from several threads: the worst is that directories are synced once more."""

    def __init__(self, disk: IDisk, names: NameStrategy, generator: NameGenerator) -> None:
        self.disk, self.names, self.generator = disk, names, generator
        self._durable: set[tuple[str, str, str]] = set()
        self._durable_paths: set[str] = set()
        """Directories of maildirs (`userpath`) that are durable with all above them."""

    def open(self, userpath: str, user: bytes, mailpath: str) -> OpenMaildir:
        """As `begin`; on return the maildir's directories survive a power cut."""
        maildir = self.begin(userpath, user, mailpath)
        try:
            maildir.make_durable()
        except OSError:
            maildir.close()
            raise
        return maildir

    def begin(self, userpath: str, user: bytes, mailpath: str) -> OpenMaildir:
        """Open a maildir; the caller closes it, and calls `make_durable` before a message counts in it. Raises OSError, also
        for a user's name that can have no maildir."""
        name = os.fsdecode(user)
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise OSError(errno.EINVAL, "a user of this name can have no maildir")
        key = (userpath, name, mailpath)
        is_durable = key in self._durable
        if userpath not in self._durable_paths:
            self._make_userpath(userpath)
        with ExitStack() as way, ExitStack() as opened:
            not_durable: list[tuple[IDirectory, bool]] = []
            maildir = self._open_userpath(userpath)
            for part in (name, *_parts(mailpath)):
                way.callback(maildir.close)
                maildir = _open_below(maildir, part, not_durable, is_durable=is_durable)
            opened.callback(maildir.close)
            is_made = [_make(maildir, subdirectory) for subdirectory in SUBDIRECTORIES]
            if any(is_made) or not is_durable:
                not_durable.append((maildir, any(is_made)))
            tmp = maildir.open_directory("tmp")
            opened.callback(tmp.close)
            new = maildir.open_directory("new")
            opened.pop_all()
            above = way.pop_all()
        if not not_durable:
            above.close()
        return OpenMaildir(maildir, tmp, new, above, not_durable, partial(self._note_durable, key))

    def _note_durable(self, key: tuple[str, str, str]) -> None:
        if len(self._durable) >= REMEMBERED:
            self._durable.clear()
        self._durable.add(key)

    def use_names(self, names: NameStrategy) -> None:
        """Use another strategy for later names."""
        self.names = names

    def _make_userpath(self, userpath: str) -> None:
        make_directories(self.disk, userpath)
        self._durable_paths.add(userpath)

    def _open_userpath(self, userpath: str) -> IDirectory:
        try:
            return self.disk.open_directory(userpath, may_be_link=True)
        except FileNotFoundError:  # it was removed meanwhile
            self._make_userpath(userpath)
            return self.disk.open_directory(userpath, may_be_link=True)


def _open_below(
    directory: IDirectory, name: str, not_durable: list[tuple[IDirectory, bool]], *, is_durable: bool
) -> IDirectory:
    """Open a directory in another one; make it if it is missing. Where it may not be durable, add the one above it, and
    whether it was made."""
    if is_durable:
        try:
            return directory.open_directory(name)
        except FileNotFoundError:
            pass
    not_durable.append((directory, _make(directory, name)))
    return directory.open_directory(name)


def _parts(mailpath: str) -> list[str]:
    return [part for part in mailpath.split("/") if part not in ("", ".")]


def _make(directory: IDirectory, name: str) -> bool:
    """Make a directory unless the name is taken. Whether it was made. Raises OSError."""
    try:
        directory.describe(name)
    except FileNotFoundError:
        try:
            directory.make_directory(name)
        except FileExistsError:
            return False
        return True
    return False


def _sync(directory: IDirectory, *, is_made: bool) -> None:
    """Sync a directory; where nothing was made in it, the right to read it may be missing: others made what is there."""
    try:
        directory.sync()
    except PermissionError:
        if is_made:
            raise


def make_directories(disk: IDisk, path: str) -> None:
    """Make a directory (0700) and its missing parents; each that is made, and the last in any case that may be read, is
    synced into its parent. Raises OSError."""
    parent = os.path.dirname(path)
    if parent == path:
        return
    if not disk.exists(parent):
        make_directories(disk, parent)
    is_made = False
    if not disk.exists(path):
        try:
            disk.make_directory(path)
            is_made = True
        except FileExistsError:
            pass
    try:
        disk.sync_directory(parent)
    except PermissionError:
        if is_made:
            raise
