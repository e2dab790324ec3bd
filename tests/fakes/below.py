"""An open directory of a test disk: names below its path, done by the disk itself, so that its faults and records hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from mailismus.disk.interface import IDirectory, IDisk, IFile, ISynced, NameFacts, NameStanding, close_read


class PathDisk(IDisk, Protocol):
    """A test disk, which knows files by paths."""

    def standing_of(self, inode: object, path: str) -> NameStanding:
        """How this inode stands to a name."""


class DirectoryByPath:
    """`IDirectory`. No test renames a directory that somebody has open and goes on to work in it."""

    def __init__(self, disk: PathDisk, path: str, inode: object) -> None:
        self._disk, self.path, self._inode = disk, path, inode
        self.is_open = True

    def _below(self, name: str) -> str:
        assert self.is_open, f"{self.path} was closed"
        assert "/" not in name, name
        return f"{self.path.rstrip('/')}/{name}"

    def standing(self, path: str) -> NameStanding:
        return self._disk.standing_of(self._inode, path)

    def open_directory(self, name: str) -> IDirectory:
        return self._disk.open_directory(self._below(name))

    def make_directory(self, name: str) -> None:
        self._disk.make_directory(self._below(name))

    def describe(self, name: str) -> NameFacts:
        return self._disk.describe(self._below(name))

    def names(self) -> list[str]:
        assert self.is_open
        return self._disk.list_directory(self.path)

    def inode_numbers(self) -> dict[str, int]:
        assert self.is_open
        return {name: self._disk.describe(self._below(name)).inode[1] for name in self._disk.list_directory(self.path)}

    def create(self, name: str) -> IFile:
        return self._disk.create(self._below(name))

    def open(self, name: str) -> IFile:
        return self._disk.open(self._below(name))

    def read(self, name: str) -> bytes:
        file = self._disk.open(self._below(name))
        try:
            return file.read_at(0, file.size())
        finally:
            close_read(file)

    def link(self, name: str, directory: IDirectory, new_name: str) -> None:
        self._disk.link(self._below(name), _path_in(directory, new_name))

    def append(self, name: str, data: bytes) -> None:
        file = self._disk.open(self._below(name))
        try:
            file.write_at(file.size(), (data,))
        finally:
            file.close()

    def rename(self, name: str, directory: IDirectory, new_name: str) -> None:
        self._disk.rename(self._below(name), _path_in(directory, new_name))

    def rename_new(self, name: str, directory: IDirectory, new_name: str) -> None:
        self._disk.rename_new(self._below(name), _path_in(directory, new_name))

    def unlink(self, name: str) -> None:
        self._disk.unlink(self._below(name))

    def sync(self) -> None:
        assert self.is_open
        self._disk.sync_directory(self.path)

    def close(self) -> None:
        self.is_open = False


def _path_in(directory: IDirectory, name: str) -> str:
    assert isinstance(directory, DirectoryByPath)
    return directory._below(name)


class WholeByPath:
    """`IFileSystem` of a test disk: its one file system."""

    def __init__(self, disk: PathDisk, path: str) -> None:
        self._disk, self._path = disk, path
        self._is_open = True
        self._untold: OSError | None = None

    def fail_write_back(self, error: OSError) -> None:
        """The system could not write pages of some file, and told another program: this opening is told by its next sync."""
        self._untold = error

    def sync(self) -> None:
        assert self._is_open, f"the file system of {self._path} was closed"
        self._disk.sync_file_system(self._path)
        error, self._untold = self._untold, None
        if error is not None:
            raise error

    def close(self) -> None:
        self._is_open = False


def sync_in_order(items: Sequence[ISynced]) -> None:
    """`IDisk.sync_together` of a test disk: one after the other, all of them, whatever fails."""
    errors: list[OSError] = []
    for item in items:
        try:
            item.sync()
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]


class FileLocks:
    """Which openings of a test disk's files hold locks. `F`: what stands for an inode."""

    def __init__(self) -> None:
        self._holders: dict[int, object] = {}

    def take(self, inode: object, opening: object) -> bool:
        """Lock the file for this opening. Whether it holds the lock now."""
        return self._holders.setdefault(id(inode), opening) is opening

    def release(self, inode: object, opening: object) -> None:
        """The opening is closed."""
        if self._holders.get(id(inode)) is opening:
            del self._holders[id(inode)]

    def clear(self) -> None:
        """The process is gone."""
        self._holders.clear()


class NameLocks(set[str]):
    """Paths of files that are locked, by one holder alone or by several that share the lock."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        super().__init__(paths)
        self._sharing: Counter[str] = Counter()

    def take(self, path: str, *, is_shared: bool) -> bool:
        """Whether it is locked now."""
        if path in self and not (is_shared and self._sharing[path]):
            return False
        self.add(path)
        self._sharing[path] += is_shared
        return True

    def drop(self, path: str) -> None:
        """A lock is released; harmless where there is none."""
        self._sharing[path] -= 1
        if self._sharing[path] <= 0:
            del self._sharing[path]
            self.discard(path)

    def clear(self) -> None:
        super().clear()
        self._sharing.clear()
