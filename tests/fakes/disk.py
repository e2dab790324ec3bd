"""A disk in memory that can lose its power and fail: what was not synced is gone, as POSIX allows."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from mailismus.disk.interface import IDirectory, IFile, IFileSystem, ILock, ISynced, NameFacts, NameKind, NameStanding, Space
from tests.fakes.below import DirectoryByPath, FileLocks, NameLocks, WholeByPath, sync_in_order
from tests.fakes.inode_numbers import InodeNumbers

T = TypeVar("T")

Fault = Callable[[str, str], OSError | None]
"""Asked before each act with its name and path: the error it fails with, or None."""


class _Inode:
    def __init__(self, number: int = 0) -> None:
        self.number = number
        """0: it was made beside the disk, and gets one when somebody asks."""
        self.data = bytearray()
        self.durable = b""


class MemoryFile:
    """`IFile` of a `MemoryDisk`."""

    def __init__(self, disk: MemoryDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.is_open = True
        self._life = disk.life
        if inode.number:
            disk.numbers.hold(inode.number)

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        self._disk.check("write", self._path)
        data = b"".join(buffers)
        content = self._inode.data
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        self._disk.check("read", self._path)
        if not self.is_open:
            raise OSError(errno.EBADF, "closed", self._path)
        return bytes(self._inode.data[offset : offset + size_bytes])

    def size(self) -> int:
        return len(self._inode.data)

    def describe(self) -> NameFacts:
        self._disk.check("describe", self._path)
        return self._disk.facts_of(self._inode)

    def lock(self) -> bool:
        self._disk.check("lock file", self._path)
        return self._disk.file_locks.take(self._inode, self)

    def truncate(self, size_bytes: int) -> None:
        self._disk.check("truncate", self._path)
        del self._inode.data[size_bytes:]

    def sync(self) -> None:
        self._disk.check("sync", self._path)
        self._inode.durable = bytes(self._inode.data)

    def standing(self, path: str) -> NameStanding:
        self._disk.check("standing", path)
        return self._disk.standing_of(self._inode, path)

    def close(self) -> None:
        if self.is_open and self._inode.number and self._disk.life == self._life:
            self._disk.numbers.release(self._inode.number)
        self._disk.file_locks.release(self._inode, self)
        self.is_open = False


class MemoryLock:
    """`ILock` of a `MemoryDisk`."""

    def __init__(self, disk: MemoryDisk, path: str, inode: object) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._is_held = True

    def standing(self, path: str) -> NameStanding:
        self._disk.check("standing", path)
        return self._disk.standing_of(self._inode, path)

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._disk.locks.drop(self._path)


class MemoryDirectory(DirectoryByPath):
    """`IDirectory` of a `MemoryDisk`."""

    def standing(self, path: str) -> NameStanding:
        assert isinstance(self._disk, MemoryDisk)
        self._disk.check("standing", path)
        return super().standing(path)


class MemoryDisk:
    """`IDisk` in memory. Directories are durable at once; names and bytes only when synced. Each directory of the root is a
    file system of its own."""

    def __init__(self) -> None:
        self.directories = {"/"}
        self.names: dict[str, _Inode] = {}
        self.durable_names: dict[str, _Inode] = {}
        self.locks = NameLocks()
        self.file_locks = FileLocks()
        self._others: dict[str, object] = {}
        """What stands for the inodes of directories."""
        self._lock_files: dict[str, object] = {}
        """What stands for the files of locks, which are no names here."""
        self.fault: Fault | None = None
        self.acts: list[tuple[str, str]] = []
        self.unsafe: dict[str, str] = {}
        self.owners: dict[str, int] = {}
        self.modes: dict[str, int] = {}
        """Of names that are not their owner's alone."""
        self.wholes: list[WholeByPath] = []
        """Openings of file systems."""
        self.numbers = InodeNumbers()
        self.life = 0
        """How often the process was gone: what it had open is closed."""
        self.total_bytes = 1 << 36
        self.free_bytes = 1 << 35

    def check(self, act: str, path: str) -> None:
        """Note the act; fail where a fault says so."""
        self.acts.append((act, path))
        error = self.fault(act, path) if self.fault is not None else None
        if error is not None:
            raise error

    def power_cut(self) -> None:
        """What was not synced is gone; nobody holds a lock."""
        self.names = dict(self.durable_names)
        for inode in self.names.values():
            inode.data = bytearray(inode.durable)
        self._close_all()

    def kill(self) -> None:
        """The process is gone; the page cache is not."""
        self._close_all()

    def _close_all(self) -> None:
        self.locks.clear()
        self.file_locks.clear()
        self.life += 1
        self.numbers.keep(inode.number for inode in self.names.values() if inode.number)

    def new_inode(self, path: str) -> _Inode:
        """A new file of this name."""
        inode = self.names[path] = _Inode(self.numbers.take())
        return inode

    def _drop_name(self, path: str) -> None:
        inode = self.names.pop(path)
        if inode.number:
            self.numbers.release(inode.number)

    def content_of(self, path: str) -> bytes:
        """The bytes under a name."""
        return bytes(self.names[path].data)

    def damage(self, path: str, offset: int, data: bytes) -> None:
        """Other bytes at this place, on the medium too."""
        inode = self.names[path]
        inode.data[offset : offset + len(data)] = data
        inode.durable = bytes(inode.data)

    def standing_of(self, inode: object, path: str) -> NameStanding:
        """How this inode stands to a name."""
        if self._inode_of(path) is inode or self._lock_files.get(path) is inode:
            return NameStanding.NAMED
        everything = (*self.names.values(), *self._others.values(), *self._lock_files.values())
        return NameStanding.MOVED if any(other is inode for other in everything) else NameStanding.REMOVED

    def _inode_of(self, path: str) -> object | None:
        if path in self.directories:
            return self._others.setdefault(path, object())
        return self.names.get(path)

    def move_lock(self, path: str, new_path: str) -> None:
        """`mv` of the file of a lock, which whoever holds it goes on to hold."""
        self._lock_files[new_path] = self._lock_files.pop(path)

    def remove_tree(self, path: str) -> None:
        """`rm -rf`: of a directory, a file or a lock."""
        for names in (self.names, self.durable_names, self._others, self._lock_files):
            for name in [name for name in names if name == path or name.startswith(f"{path}/")]:
                if names is self.names:
                    self._drop_name(name)
                else:
                    del names[name]
        self.directories = {name for name in self.directories if name != path and not name.startswith(f"{path}/")}
        for name in [name for name in self.locks if name == path or name.startswith(f"{path}/")]:
            self.locks.drop(name)

    def exists(self, path: str) -> bool:
        return path in self.directories or path in self.names

    def describe(self, path: str) -> NameFacts:
        self.check("describe", path)
        owner, mode = self.owners.get(path, 0), self.modes.get(path)
        if path in self.directories:
            inode_number = (0, id(self._inode_of(path)))
            return NameFacts(NameKind.DIRECTORY, owner, 0o700 if mode is None else mode, inode_number, 2, 0)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self.facts_of(self.names[path], owner, 0o600 if mode is None else mode)

    def facts_of(self, inode: _Inode, owner: int = 0, mode: int = 0o600) -> NameFacts:
        """What a file is."""
        links = sum(other is inode for other in self.names.values())
        if not inode.number:
            inode.number = self.numbers.take()
            for _ in range(links - 1):
                self.numbers.hold(inode.number)
        return NameFacts(NameKind.FILE, owner, mode, (0, inode.number), links, len(inode.data))

    def make_private(self, path: str, owner: int) -> None:
        self.check("make private", path)
        self.owners.pop(path, None)
        self.modes.pop(path, None)
        if owner:
            self.owners[path] = owner

    def make_directory(self, path: str) -> None:
        self.check("mkdir", path)
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "exists", path)
        if os.path.dirname(path) not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self.directories.add(path)

    def remove_directory(self, path: str) -> None:
        self.check("rmdir", path)
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if self.list_directory(path):
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        self.directories.discard(path)
        self._others.pop(path, None)

    def list_directory(self, path: str) -> list[str]:
        self.check("list", path)
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return [os.path.basename(name) for name in (*self.names, *self.directories) if os.path.dirname(name) == path]

    def open_directory(self, path: str, *, may_be_link: bool = False) -> IDirectory:
        self.check("open directory", path)
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return MemoryDirectory(self, path, self._inode_of(path))

    def sync_directory(self, path: str) -> None:
        self.check("sync directory", path)
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        for name in [name for name in self.durable_names if os.path.dirname(name) == path]:
            del self.durable_names[name]
        self.durable_names.update({n: inode for n, inode in self.names.items() if os.path.dirname(n) == path})

    def sync_file_system(self, path: str) -> None:
        """Of `/`: all of them."""
        self.check("sync file system", path)
        root = "/" if path == "/" else f"/{path.split('/')[1]}/"
        others = {name: inode for name, inode in self.durable_names.items() if not name.startswith(root)}
        here = {name: inode for name, inode in self.names.items() if name.startswith(root)}
        self.durable_names = others | here
        for inode in here.values():
            inode.durable = bytes(inode.data)

    def sync_together(self, items: Sequence[ISynced]) -> None:
        sync_in_order(items)

    def open_file_system(self, paths: Sequence[str]) -> IFileSystem | None:
        self.check("open file system", paths[0])
        self.wholes.append(whole := WholeByPath(self, paths[0]))
        return whole

    def create(self, path: str) -> IFile:
        self.check("create", path)
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "exists", path)
        if os.path.dirname(path) not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return MemoryFile(self, path, self.new_inode(path))

    def open(self, path: str) -> IFile:
        self.check("open", path)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return MemoryFile(self, path, self.names[path])

    def link(self, path: str, new_path: str) -> None:
        self.check("link", new_path)
        if self.exists(new_path):
            raise FileExistsError(errno.EEXIST, "exists", new_path)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        inode = self.names[new_path] = self.names[path]
        if inode.number:
            self.numbers.hold(inode.number)

    def rename(self, path: str, new_path: str) -> None:
        self.check("rename", path)
        if path in self.directories:
            _move(self.names, path, new_path)
            _move(self.durable_names, path, new_path)
            _move(self._others, path, new_path)
            _move(self._lock_files, path, new_path)
            moved = {name for name in self.directories if name == path or name.startswith(f"{path}/")}
            self.directories = self.directories - moved | {new_path + name[len(path) :] for name in moved}
            return
        inode = self.names.pop(path)
        if new_path in self.names:
            self._drop_name(new_path)
        self.names[new_path] = inode

    def unlink(self, path: str) -> None:
        self.check("unlink", path)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._drop_name(path)

    def rename_new(self, path: str, new_path: str) -> None:
        self.check("rename", new_path)
        if self.exists(new_path):
            raise FileExistsError(errno.EEXIST, "exists", new_path)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.names[new_path] = self.names.pop(path)

    def lock(self, path: str, *, is_shared: bool = False) -> ILock | None:
        self.check("lock", path)
        if not self.locks.take(path, is_shared=is_shared):
            return None
        return MemoryLock(self, path, self._lock_files.setdefault(path, object()))

    def space(self, path: str) -> Space:
        return Space(self.total_bytes, self.free_bytes, 0, 0)

    def refuse_unsafe(self, path: str) -> str | None:
        return self.unsafe.get(path)


def _move(names: dict[str, T], path: str, new_path: str) -> None:
    """A directory, and everything in it."""
    inside = [name for name in names if name == path or name.startswith(f"{path}/")]
    names.update({new_path + name[len(path) :]: names.pop(name) for name in inside})
