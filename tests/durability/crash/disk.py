"""A disk in memory, begun over a tree, that remembers every act."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from mailismus.disk.interface import IDirectory, IFile, IFileSystem, ILock, ISynced, NameFacts, NameKind, NameStanding, Space
from tests.durability.crash.acts import Act, Kind, parent_of
from tests.durability.crash.tree import EMPTY, NOTHING, Tree
from tests.fakes.below import DirectoryByPath, FileLocks, NameLocks, WholeByPath, sync_in_order
from tests.fakes.inode_numbers import InodeNumbers

Fault = Callable[[Act], OSError | None]
"""Asked before each write and each barrier: the error it fails with, or None."""


class _Inode:
    __slots__ = ("data", "number", "shown")

    def __init__(self, number: int, shown: int, data: bytes | bytearray = b"") -> None:
        self.number = number
        """Names the file for life."""
        self.shown = shown
        """What the file system calls it: a file that comes later may be called the same."""
        self.data = data
        """Bytes are shared with a tree; a bytearray is ours."""

    def own(self) -> bytearray:
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        return self.data


class _File:
    """`IFile`."""

    __slots__ = ("_disk", "_inode", "_life", "_path")

    def __init__(self, disk: TreeDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._life = disk.life
        disk.numbers.hold(inode.shown)

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        data = b"".join(buffers)
        act = Act(Kind.WRITE, self._path, self._inode.number, offset, data)
        self._disk.may_fail(act)
        content = self._inode.own()
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data
        self._disk.acts.append(act)

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        data = self._inode.data
        if offset == 0 and size_bytes >= len(data) and isinstance(data, bytes):
            return data
        return bytes(data[offset : offset + size_bytes])

    def size(self) -> int:
        return len(self._inode.data)

    def describe(self) -> NameFacts:
        return self._disk.facts_of(self._inode)

    def lock(self) -> bool:
        return self._disk.file_locks.take(self._inode, self)

    def truncate(self, size_bytes: int) -> None:
        del self._inode.own()[size_bytes:]
        self._disk.acts.append(Act(Kind.TRUNCATE, self._path, self._inode.number, size_bytes))

    def sync(self) -> None:
        self._disk.barrier(Act(Kind.SYNC, self._path, self._inode.number))

    def standing(self, path: str) -> NameStanding:
        return self._disk.standing_of(self._inode, path)

    def close(self) -> None:
        if self._life == self._disk.life:
            self._disk.numbers.release(self._inode.shown)
            self._disk.file_locks.release(self._inode, self)
            self._life = -1


class _Lock:
    """`ILock`."""

    def __init__(self, locks: NameLocks, path: str) -> None:
        self._locks = locks
        self._path = path
        self._is_held = True

    def standing(self, path: str) -> NameStanding:
        return NameStanding.NAMED if path == self._path else NameStanding.MOVED  # nobody takes a lock's name away here

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._locks.drop(self._path)


class TreeDisk:
    """`IDisk`. `/q` and `/s` are two file systems."""

    def __init__(self, tree: Tree = NOTHING) -> None:
        self.tree = tree
        self.acts: list[Act] = []
        self.locks = NameLocks()
        self.file_locks = FileLocks()
        self.fault: Fault | None = None
        self.numbers = InodeNumbers()
        self.life = 0
        """How often the process was gone: what it had open is closed."""
        inodes = {
            inode: _Inode(inode, self._number_of(inode, tree), tree.contents.get(inode, EMPTY).data)
            for inode in sorted(set(tree.names.files.values()), key=lambda inode: inode not in tree.numbers)
        }
        self._last = max(inodes, default=0) + 10_000  # none that a file had which is gone
        self._directories: dict[str, dict[str, _Inode | None]] = {path: {} for path in tree.names.directories}
        for path in tree.names.directories:
            if path != "/":
                self._put(path, None)
        for path, inode in tree.names.files.items():
            self._put(path, inodes[inode])
        self._hold_names()

    def _number_of(self, inode: int, tree: Tree) -> int:
        number = tree.numbers.get(inode)
        if number is None:
            return self.numbers.take()
        self.numbers.claim(number)
        return number

    # for tests

    def mark(self, what: object) -> None:
        """A fact that the outside world knows from here on."""
        self.acts.append(Act(Kind.MARK, mark=what))

    def kill(self) -> None:
        """The process is gone; the page cache is not."""
        self.locks.clear()
        self.file_locks.clear()
        self.life += 1
        self._hold_names()

    def _hold_names(self) -> None:
        """Names alone hold the numbers of files."""
        inodes = (inode for names in self._directories.values() for inode in names.values() if inode is not None)
        self.numbers.keep(inode.shown for inode in inodes)

    def may_fail(self, act: Act) -> None:
        """Fail where a fault says so."""
        error = self.fault(act) if self.fault is not None else None
        if error is not None:
            raise error

    def barrier(self, act: Act) -> None:
        """Note it, or that it fails."""
        try:
            self.may_fail(act)
        except OSError:
            if act.kind is not Kind.SYNC_DIRECTORY:
                self.acts.append(Act(Kind.SYNC_FAILED, act.path, act.inode))
            raise
        self.acts.append(act)

    def paths(self, ends_with: tuple[str, ...]) -> list[str]:
        """Files of such names."""
        return [
            f"{directory}/{name}"
            for directory, names in self._directories.items()
            for name in names
            if name.endswith(ends_with)
        ]

    def _put(self, path: str, inode: _Inode | None) -> None:
        directory, _, name = path.rpartition("/")
        self._directories[directory or "/"][name] = inode

    def _find(self, path: str) -> _Inode:
        directory, _, name = path.rpartition("/")
        inode = self._directories.get(directory or "/", {}).get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode

    def standing_of(self, inode: object, path: str) -> NameStanding:
        """How a file or a directory stands to this name."""
        directory, _, name = path.rpartition("/")
        found = self._directories.get(path) if path in self._directories else self._directories.get(directory, {}).get(name)
        if found is inode:
            return NameStanding.NAMED
        known = any(other is inode for names in self._directories.values() for other in (names, *names.values()))
        return NameStanding.MOVED if known else NameStanding.REMOVED

    def _drop(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        inode = self._directories[directory or "/"].pop(name)
        if inode is not None:
            self.numbers.release(inode.shown)

    def _refuse_taken(self, path: str) -> None:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "exists", path)
        if parent_of(path) not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)

    # IDisk

    def exists(self, path: str) -> bool:
        directory, _, name = path.rpartition("/")
        return not name or name in self._directories.get(directory or "/", ())

    def describe(self, path: str) -> NameFacts:
        if path in self._directories:
            return NameFacts(NameKind.DIRECTORY, 0, 0o700, (0, id(self._directories[path])), 2, 0)
        return self.facts_of(self._find(path))

    def facts_of(self, inode: _Inode) -> NameFacts:
        """What a file is."""
        links = sum(other is inode for names in self._directories.values() for other in names.values())
        return NameFacts(NameKind.FILE, 0, 0o600, (0, inode.shown), links, len(inode.data))

    def make_private(self, path: str, owner: int) -> None:
        pass  # knows neither owners nor modes

    def make_directory(self, path: str) -> None:
        self._refuse_taken(path)
        self._directories[path] = {}
        self._put(path, None)
        self.acts.append(Act(Kind.MKDIR, path))

    def remove_directory(self, path: str) -> None:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if self._directories[path]:
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        del self._directories[path]
        self._drop(path)
        self.acts.append(Act(Kind.RMDIR, path))

    def list_directory(self, path: str) -> list[str]:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return list(self._directories[path])

    def open_directory(self, path: str, *, may_be_link: bool = False) -> IDirectory:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return DirectoryByPath(self, path, self._directories[path])

    def sync_directory(self, path: str) -> None:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self.barrier(Act(Kind.SYNC_DIRECTORY, path))

    def sync_file_system(self, path: str) -> None:
        self.barrier(Act(Kind.SYNC_FILE_SYSTEM, path))

    def sync_together(self, items: Sequence[ISynced]) -> None:
        sync_in_order(items)

    def open_file_system(self, paths: Sequence[str]) -> IFileSystem | None:
        return WholeByPath(self, paths[0])

    def create(self, path: str) -> IFile:
        self._refuse_taken(path)
        self._last += 1
        inode = _Inode(self._last, self.numbers.take())
        self._put(path, inode)
        self.acts.append(Act(Kind.CREATE, path, inode.number, inode.shown))
        return _File(self, path, inode)

    def open(self, path: str) -> IFile:
        return _File(self, path, self._find(path))

    def link(self, path: str, new_path: str) -> None:
        inode = self._find(path)
        self._refuse_taken(new_path)
        self._put(new_path, inode)
        self.numbers.hold(inode.shown)
        self.acts.append(Act(Kind.LINK, path, inode.number, to=new_path))

    def rename(self, path: str, new_path: str) -> None:
        if path in self._directories:
            self._rename_directory(path, new_path)
            return
        inode = self._find(path)
        self.numbers.hold(inode.shown)
        self._drop(path)
        if self.exists(new_path):
            self._drop(new_path)
        self._put(new_path, inode)
        self.acts.append(Act(Kind.RENAME, path, inode.number, to=new_path))

    def _rename_directory(self, path: str, new_path: str) -> None:
        if self._directories.get(new_path):
            raise OSError(errno.ENOTEMPTY, "not empty", new_path)
        if new_path not in self._directories:
            self._refuse_taken(new_path)
        for known in [one for one in self._directories if one == path or one.startswith(path + "/")]:
            self._directories[new_path + known.removeprefix(path)] = self._directories.pop(known)
        self._drop(path)
        self._put(new_path, None)
        self.acts.append(Act(Kind.RENAME, path, to=new_path))

    def unlink(self, path: str) -> None:
        inode = self._find(path)
        self._drop(path)
        self.acts.append(Act(Kind.UNLINK, path, inode.number))

    def rename_new(self, path: str, new_path: str) -> None:
        inode = self._find(path)
        self._refuse_taken(new_path)
        self.numbers.hold(inode.shown)
        self._drop(path)
        self._put(new_path, inode)
        self.acts.append(Act(Kind.RENAME, path, inode.number, to=new_path))

    def lock(self, path: str, *, is_shared: bool = False) -> ILock | None:
        return _Lock(self.locks, path) if self.locks.take(path, is_shared=is_shared) else None

    def space(self, path: str) -> Space:
        return Space(1 << 36, 1 << 35, 0, 0)

    def refuse_unsafe(self, path: str) -> str | None:
        return None
