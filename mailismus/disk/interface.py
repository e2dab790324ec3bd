"""The one door to the file system: every act on queue and spool goes through here, and tests can close it.

Blocking: called in worker threads (`disk.worker`), or before the reactor runs. Paths are absolute and made by our own
code alone. Everything raises OSError, and nothing else.

*What is durable* is said for each act, for a power cut; `kill -9` loses nothing of what a call that returned has done.
The weaker, POSIX reading holds: a file's bytes need `IFile.sync`, a name needs `IDisk.sync_directory` of its directory.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

import attrs


@attrs.frozen
class Space:
    """What a file system has and has left for us: bytes and inodes. `inodes` 0: it does not count them."""

    size_bytes: int
    free_bytes: int
    inodes: int
    free_inodes: int


class NameKind(enum.Enum):
    """What a name stands for."""

    FILE = "a file"
    DIRECTORY = "a directory"
    LINK = "a symbolic link"
    OTHER = "a pipe, a socket or a device"


@attrs.frozen
class NameFacts:
    """What a file system tells of a name; `inode` and its device name a file whatever it is called."""

    kind: NameKind
    owner: int
    mode: int
    """Permission bits."""
    inode: tuple[int, int]
    links: int
    """Names of the file, wherever they are."""
    size_bytes: int


class NameStanding(enum.Enum):
    """How something that is open stands to the name under which it was opened."""

    NAMED = "the name leads to it"
    MOVED = "the name leads to nothing, or to something else; other names may lead to it"
    REMOVED = "no name leads to it: it is gone when the last process closes it"


class INamed(Protocol):
    """Something that was opened under a name and stays open, whatever happens to the name."""

    def standing(self, path: str) -> NameStanding:
        """How it stands to this name now. Raises where that can't be told. It may be another in the next moment."""


class IFile(INamed, Protocol):
    """An open file."""

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        """Write all buffers, one behind the other; a short write is continued. After a failure any part of it may be
        written. Durable afterwards: nothing."""

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        """Up to so many bytes; fewer only at the end of the file."""

    def size(self) -> int:
        """Its length in bytes."""

    def truncate(self, size_bytes: int) -> None:
        """Cut it to this length. Durable afterwards: nothing."""

    def sync(self) -> None:
        """Barrier (fdatasync). Durable afterwards: all bytes written before, and the length; not the file's name.

        After a failure nothing written since the last good sync can be trusted, even if a later call returns: the
        system may have dropped the pages and marked them clean.
        """

    def close(self) -> None:
        """Durable afterwards: nothing. Closed, even if it raises; harmless when repeated. Who has only read uses
        `close_read`."""


def close_read(file: IFile) -> None:
    """Close a file that was only read: no failure of that costs anybody anything."""
    try:
        file.close()
    except OSError:
        pass


class ILock(INamed, Protocol):
    """A lock held, on a file. Where its name does not lead to that file any more, another process may hold the lock of that
    name."""

    def release(self) -> None:
        """Give it up; so does the end of the process, however it ends."""


class IDirectory(INamed, Protocol):
    """An open directory. While it is open its inode is no other's, also when it was removed."""

    def close(self) -> None:
        """Harmless when repeated; never fails."""


class IDisk(Protocol):
    """A file system."""

    def exists(self, path: str) -> bool:
        """Whether the name is taken, be it by a link that leads nowhere. Raises where that can't be told: a name that is
        passed over is work that is left out."""

    def describe(self, path: str) -> NameFacts:
        """What this name stands for; a symbolic link stands for itself."""

    def make_private(self, path: str, owner: int) -> None:
        """For its owner alone, who is this user from now on (0700 a directory, 0600 a file). Durable afterwards: nothing."""

    def make_directory(self, path: str) -> None:
        """A new directory for its owner alone (0700). Durable afterwards: nothing; sync its parent."""

    def remove_directory(self, path: str) -> None:
        """Remove it; fails unless it is empty. Durable afterwards: nothing; sync its parent."""

    def list_directory(self, path: str) -> list[str]:
        """Names in it, in no order."""

    def open_directory(self, path: str) -> IDirectory:
        """An existing directory, to know it again. Never through a symbolic link at its last part."""

    def sync_directory(self, path: str) -> None:
        """Durable afterwards: every name made, moved or removed in it before."""

    def sync_file_system(self, path: str) -> None:
        """Durable afterwards: everything written, made, moved or removed before in the file system that holds `path`."""

    def create(self, path: str) -> IFile:
        """A new file (0600), open for writing and reading; FileExistsError if the name is taken. Durable: nothing."""

    def open(self, path: str) -> IFile:
        """An existing file, for writing and reading. Never through a symbolic link, and never waiting for the other end of a
        pipe."""

    def link(self, path: str, new_path: str) -> None:
        """Another name for a file, in the same file system; FileExistsError if it is taken. Durable afterwards: nothing;
        sync its directory."""

    def rename(self, path: str, new_path: str) -> None:
        """Move within one file system, replacing. Durable afterwards: nothing; sync both directories."""

    def unlink(self, path: str) -> None:
        """Remove the name. Durable afterwards: nothing; sync the directory."""

    def lock(self, path: str) -> ILock | None:
        """Lock the file of this name (made if need be, but by who only reads) for this process alone; None: another holds
        it."""

    def space(self, path: str) -> Space:
        """Of the file system that holds `path`."""

    def refuse_unsafe(self, path: str) -> str | None:
        """Why this directory of ours can't be trusted (a symbolic link, another's, open to others, under a directory
        that others can write and that is not sticky) and the command that mends it; None: it can."""
