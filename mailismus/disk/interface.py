"""Interface to the file system: every operation on queue and spool goes through it, and tests can replace it.

Operations block: call them in worker threads (`disk.worker`), or before the reactor runs. Paths are absolute and made by our
own code alone. Every operation may raise OSError, and no other exception.

*Durable afterwards* is stated for each operation and means a power cut; `kill -9` undoes nothing that a call has done before
it returned. The weaker, POSIX guarantees hold: a file's bytes need `IFile.sync`, a name needs `IDisk.sync_directory` of its
directory.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

import attrs


@attrs.frozen
class Space:
    """Size and free space of a file system for us, in bytes and inodes. `inodes` 0: it does not count them."""

    size_bytes: int
    free_bytes: int
    inodes: int
    free_inodes: int


class NameKind(enum.Enum):
    """The type of a name's target."""

    FILE = "a file"
    DIRECTORY = "a directory"
    LINK = "a symbolic link"
    OTHER = "a pipe, a socket or a device"


@attrs.frozen
class NameFacts:
    """Metadata of a name. `inode` includes the device and identifies a file under any name."""

    kind: NameKind
    owner: int
    mode: int
    """Permission bits."""
    inode: tuple[int, int]
    links: int
    """Number of hard links, in any directory."""
    size_bytes: int
    changed_at: float = 0.0
    """When its bytes, its metadata or the number of its names last changed, UTC seconds of this machine's clock, which may
    jump. 0: the file system does not tell."""


class NameStanding(enum.Enum):
    """Relation of an open object to the name under which it was opened."""

    NAMED = "the name leads to it"
    MOVED = "the name leads to nothing, or to something else; other names may lead to it"
    REMOVED = "no name leads to it: it is gone when the last process closes it"


class INamed(Protocol):
    """An object that was opened under a name and stays open, whatever happens to the name."""

    def standing(self, path: str) -> NameStanding:
        """Its relation to this name now. Raises OSError where that can't be found out. The next moment may change it."""


class IFile(INamed, Protocol):
    """An open file."""

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        """Write all buffers, one after the other; continue a short write. After a failure any part of them may be written.
        Durable afterwards: nothing."""

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        """Read up to this many bytes; fewer only at the end of the file."""

    def size(self) -> int:
        """Its length in bytes."""

    def describe(self) -> NameFacts:
        """Metadata of the open file, whatever its names. No other file gets its inode while it is open; once it is closed
        and its last name is gone, the next new file may get it."""

    def lock(self) -> bool:
        """Lock the file for this opening alone, until it is closed or the process ends. False: another opening, of this
        process or of another one, holds the lock. Not for files that `IDisk.lock` locks."""

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to this length. Durable afterwards: nothing."""

    def sync(self) -> None:
        """Barrier (fdatasync). Durable afterwards: all bytes written before, and the length; not the file's name.

        After a failure nothing written since the last successful sync can be trusted, even if a later call returns: the
        system may have dropped the pages and marked them clean.
        """

    def close(self) -> None:
        """Close the file, also if this raises; harmless when repeated. Durable afterwards: nothing. Use `close_read` for a
        file that was only read."""


def close_read(file: IFile) -> None:
    """Close a file that was only read, and ignore a failure, which loses nothing."""
    try:
        file.close()
    except OSError:
        pass


class ILock(INamed, Protocol):
    """A lock held on a file. If its name does not lead to that file any more, another process may hold the lock of that
    name."""

    def release(self) -> None:
        """Release the lock; the end of the process does so too, however it ends."""


class IDirectory(INamed, Protocol):
    """An open directory, and the names in it. While it is open no other object gets its inode, even after it was removed.

    A name is one part of a path, without a slash. None is followed where it is a symbolic link, and it stays in this
    directory whatever becomes of the path under which the directory was opened.
    """

    def open_directory(self, name: str) -> IDirectory:
        """Open a directory in it. A symbolic link: NotADirectoryError, or OSError with ELOOP."""

    def make_directory(self, name: str) -> None:
        """Make a directory for its owner alone (0700). Durable afterwards: nothing; sync this one."""

    def describe(self, name: str) -> NameFacts:
        """Metadata of a name; a symbolic link is not followed."""

    def names(self) -> list[str]:
        """Names in the directory, in no order."""

    def inode_numbers(self) -> dict[str, int]:
        """The names in the directory, and the number of the inode that each leads to. No file is looked at."""

    def create(self, name: str) -> IFile:
        """As `IDisk.create`."""

    def open(self, name: str) -> IFile:
        """As `IDisk.open`."""

    def read(self, name: str) -> bytes:
        """All bytes of a small file, in few calls."""

    def link(self, name: str, directory: IDirectory, new_name: str) -> None:
        """Give a file of this directory another name in that one; FileExistsError if it is taken. Durable afterwards:
        nothing; sync that directory. After a failure it may be done all the same, over a network: see the number of its
        links."""

    def append(self, name: str, data: bytes) -> None:
        """Append to an existing file in one write, so that nothing of another writer comes between. Durable afterwards:
        nothing."""

    def rename(self, name: str, directory: IDirectory, new_name: str) -> None:
        """Move a file of this directory to a name in that one, and replace a file of that name. Durable afterwards:
        nothing; sync both directories."""

    def rename_new(self, name: str, directory: IDirectory, new_name: str) -> None:
        """Move a file of this directory to a name in that one; FileExistsError if it is taken: nothing is replaced. Durable
        afterwards: nothing; sync both directories. OSError with EINVAL where the file system has no such call."""

    def unlink(self, name: str) -> None:
        """Remove the name. Durable afterwards: nothing; sync this directory."""

    def sync(self) -> None:
        """Durable afterwards: every name made, moved or removed in it before."""

    def close(self) -> None:
        """Close it. Harmless when repeated; never fails."""


class ISynced(Protocol):
    """An open file or directory."""

    def sync(self) -> None:
        """As `IFile.sync` or `IDirectory.sync`."""


class IFileSystem(Protocol):
    """An open file system, for barriers over all of it."""

    def sync(self) -> None:
        """Barrier. Durable afterwards: everything written, made, moved or removed in it before, by whatever program, as far
        as that was done while it was open here.

        It fails if any write to its medium has failed since it was opened or last synced, whichever file that was of: then
        nothing written since can be trusted, even if a later call returns.
        """

    def close(self) -> None:
        """Close it. Harmless when repeated; never fails."""


class IDisk(Protocol):
    """A file system."""

    def exists(self, path: str) -> bool:
        """Whether the name exists, as a dangling link too. Raises OSError where that can't be found out: a name that is
        taken for missing is work left undone."""

    def describe(self, path: str) -> NameFacts:
        """Metadata of a name; a symbolic link is not followed."""

    def make_private(self, path: str, owner: int) -> None:
        """Give it to this user and to nobody else (0700 a directory, 0600 a file). Durable afterwards: nothing."""

    def make_directory(self, path: str) -> None:
        """Make a directory for its owner alone (0700). Durable afterwards: nothing; sync its parent."""

    def remove_directory(self, path: str) -> None:
        """Remove it; fails unless it is empty. Durable afterwards: nothing; sync its parent."""

    def list_directory(self, path: str) -> list[str]:
        """Names in the directory, in no order."""

    def open_directory(self, path: str, *, may_be_link: bool = False) -> IDirectory:
        """Open an existing directory, to recognize it later or to work in it. Its last part is never a symbolic link, unless
        it may be one: a path that an administrator wrote."""

    def sync_directory(self, path: str) -> None:
        """Durable afterwards: every name made, moved or removed in it before."""

    def sync_file_system(self, path: str) -> None:
        """Durable afterwards: everything written, made, moved or removed before in the file system that holds `path`. A
        failed write of which another program was told first may not be told: see `open_file_system`."""

    def sync_together(self, items: Sequence[ISynced]) -> None:
        """Sync these files and directories, several at a time, and return when all calls have ended. Raises the first error:
        then none of them can be trusted to be durable."""

    def open_file_system(self, paths: Sequence[str]) -> IFileSystem | None:
        """Open the file system that holds all these directories, before what is written there. None: they are in several, or
        this system may keep failures of such a barrier back; sync each file."""

    def create(self, path: str) -> IFile:
        """Create a file (0600), open for writing and reading; FileExistsError if the name is taken. Durable afterwards:
        nothing."""

    def open(self, path: str) -> IFile:
        """Open an existing file for writing and reading. Never follows a symbolic link, never waits for the other end of a
        pipe."""

    def link(self, path: str, new_path: str) -> None:
        """Give a file another name in the same file system; FileExistsError if it is taken. Durable afterwards: nothing;
        sync its directory."""

    def rename(self, path: str, new_path: str) -> None:
        """Rename within one file system, and replace a file of the new name. Durable afterwards: nothing; sync both
        directories."""

    def unlink(self, path: str) -> None:
        """Remove the name. Durable afterwards: nothing; sync the directory."""

    def rename_new(self, path: str, new_path: str) -> None:
        """As `IDirectory.rename_new`."""

    def lock(self, path: str, *, is_shared: bool = False) -> ILock | None:
        """Lock the file of this name for this process alone, or (`is_shared`) together with others that share it; None:
        another process holds a lock that excludes this one. A missing file is created, unless the disk is open for reading
        only."""

    def space(self, path: str) -> Space:
        """Size and free space of the file system that holds `path`."""

    def refuse_unsafe(self, path: str) -> str | None:
        """Why this directory of ours is unsafe (a symbolic link, owned by another user, open to others, below a directory
        that others can write and that is not sticky), and the command that corrects it; None: it is safe."""
