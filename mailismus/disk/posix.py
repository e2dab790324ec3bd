"""The file system of the operating system.

*Rules*: a name's last part is never followed through a symbolic link. New files and directories are closed to other users.
Descriptors are not inherited through `exec`. The interpreter handles EINTR (PEP 475).
"""

from __future__ import annotations

import ctypes
import enum
import errno
import fcntl
import os
import stat
from collections.abc import Sequence

from mailismus.disk.file_system import open_trusted, sync_by
from mailismus.disk.interface import IDirectory, IFile, IFileSystem, ILock, ISynced, NameFacts, NameKind, NameStanding, Space
from mailismus.disk.several import SeveralCalls

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PATH = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE = _FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL
_APPEND = _FLAGS | os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK
_KINDS = {stat.S_IFREG: NameKind.FILE, stat.S_IFDIR: NameKind.DIRECTORY, stat.S_IFLNK: NameKind.LINK}
_libc = ctypes.CDLL(None, use_errno=True)
"""For renameat2(2), which Python does not offer. A call through ctypes lets other threads run."""
_AT_CWD = -100
_NOREPLACE = 1
SYNCS = 8
"""Files that are synced at a time: they share what the file system writes for each."""
_PIECE = 8192
"""Bytes of the first read of a small file; of each other one twice as many, up to a megabyte."""
_MAX_BUFFERS = 1000
"""Buffers in one call; the system's limit (IOV_MAX) is 1024."""


class Access(enum.Enum):
    """The mode in which existing files are opened."""

    READ_WRITE = os.O_RDWR
    READ_ONLY = os.O_RDONLY


def _standing(fd: int, path: str) -> NameStanding:
    own = os.fstat(fd)
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    else:
        if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
            return NameStanding.NAMED
    return NameStanding.MOVED if own.st_nlink else NameStanding.REMOVED


def _facts_of(found: os.stat_result) -> NameFacts:
    mode = found.st_mode
    kind = _KINDS.get(stat.S_IFMT(mode), NameKind.OTHER)
    changed_at = max(found.st_mtime, found.st_ctime)
    inode = (found.st_dev, found.st_ino)
    return NameFacts(kind, found.st_uid, stat.S_IMODE(mode), inode, found.st_nlink, found.st_size, changed_at)


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _rename_new(from_fd: int, name: str, to_fd: int, new_name: str) -> None:
    """renameat2(2), which Python does not offer."""
    if _libc.renameat2(from_fd, os.fsencode(name), to_fd, os.fsencode(new_name), _NOREPLACE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name, None, new_name)


def _sync_names(fd: int) -> None:
    """fsync of a directory. XFS that an error has shut down says of one "done" whatever is lost; fstat tells."""
    os.fsync(fd)
    os.fstat(fd)


class PosixFile:
    """An open file descriptor."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        for start in range(0, len(buffers), _MAX_BUFFERS):
            part = buffers[start : start + _MAX_BUFFERS]
            wanted = sum(map(len, part))
            written = os.pwritev(self._fd, part, offset)
            if written < wanted:
                rest = memoryview(b"".join(part))[written:]
                while rest:
                    count = os.pwrite(self._fd, rest, offset + wanted - len(rest))
                    if not count:
                        raise OSError(errno.EIO, "nothing more is written, and no reason given")
                    rest = rest[count:]
            offset += wanted

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        data = os.pread(self._fd, size_bytes, offset)
        if len(data) == size_bytes or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size_bytes and (data := os.pread(self._fd, size_bytes - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def describe(self) -> NameFacts:
        return _facts_of(os.fstat(self._fd))

    def lock(self) -> bool:
        return _try_lock(self._fd, fcntl.LOCK_EX)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._fd, size_bytes)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def standing(self, path: str) -> NameStanding:
        return _standing(self._fd, path)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class PosixLock:
    """An flock(2) on an open file; the kernel releases it with the last descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def standing(self, path: str) -> NameStanding:
        return _standing(self._fd, path)

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class PosixDirectory:
    """A descriptor that serves as a path (O_PATH), for which the right to search is enough, and `flags` for the files that
    are opened in it."""

    __slots__ = ("_flags", "fd")

    def __init__(self, fd: int, flags: int) -> None:
        self.fd, self._flags = fd, flags

    def standing(self, path: str) -> NameStanding:
        return _standing(self.fd, path)

    def open_directory(self, name: str) -> IDirectory:
        return PosixDirectory(os.open(_one_part(name), _PATH | os.O_NOFOLLOW, dir_fd=self.fd), self._flags)

    def make_directory(self, name: str) -> None:
        os.mkdir(_one_part(name), 0o700, dir_fd=self.fd)

    def describe(self, name: str) -> NameFacts:
        return _facts_of(os.stat(_one_part(name), dir_fd=self.fd, follow_symlinks=False))

    def names(self) -> list[str]:
        fd = os.open(".", _DIRECTORY, dir_fd=self.fd)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def inode_numbers(self) -> dict[str, int]:
        fd = os.open(".", _DIRECTORY, dir_fd=self.fd)
        try:
            with os.scandir(fd) as entries:
                return {entry.name: entry.inode() for entry in entries}
        finally:
            os.close(fd)

    def create(self, name: str) -> IFile:
        return PosixFile(os.open(_one_part(name), _CREATE, 0o600, dir_fd=self.fd))

    def open(self, name: str) -> IFile:
        return PosixFile(os.open(_one_part(name), self._flags | os.O_NONBLOCK, dir_fd=self.fd))

    def read(self, name: str) -> bytes:
        fd = os.open(_one_part(name), _FLAGS | os.O_RDONLY | os.O_NONBLOCK, dir_fd=self.fd)
        try:
            pieces: list[bytes] = []
            while piece := os.read(fd, _PIECE << min(len(pieces), 7)):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def link(self, name: str, directory: IDirectory, new_name: str) -> None:
        to_fd = _fd_of(directory)
        os.link(_one_part(name), _one_part(new_name), src_dir_fd=self.fd, dst_dir_fd=to_fd, follow_symlinks=False)

    def append(self, name: str, data: bytes) -> None:
        fd = os.open(_one_part(name), _APPEND, dir_fd=self.fd)
        try:
            if os.write(fd, data) < len(data):
                raise OSError(errno.EIO, "a line was written in part", name)
        finally:
            os.close(fd)

    def rename(self, name: str, directory: IDirectory, new_name: str) -> None:
        os.rename(_one_part(name), _one_part(new_name), src_dir_fd=self.fd, dst_dir_fd=_fd_of(directory))

    def rename_new(self, name: str, directory: IDirectory, new_name: str) -> None:
        _rename_new(self.fd, _one_part(name), _fd_of(directory), _one_part(new_name))

    def unlink(self, name: str) -> None:
        os.unlink(_one_part(name), dir_fd=self.fd)

    def sync(self) -> None:
        fd = os.open(".", _DIRECTORY, dir_fd=self.fd)
        try:
            _sync_names(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def _one_part(name: str) -> str:
    """A name that stays in its directory. Raises OSError for any other."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise OSError(errno.EINVAL, "not a name in a directory", name)
    return name


def _fd_of(directory: IDirectory) -> int:
    if not isinstance(directory, PosixDirectory):
        raise TypeError(f"a directory of another disk: {directory!r}")
    return directory.fd


class PosixDisk:
    """`IDisk` over system calls."""

    def __init__(self, access: Access = Access.READ_WRITE) -> None:
        """READ_ONLY: open files for reading alone, for commands that only read."""
        self._access = access
        self._flags = _FLAGS | access.value
        self._several = SeveralCalls("syncs", SYNCS)

    def exists(self, path: str) -> bool:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def describe(self, path: str) -> NameFacts:
        return _facts_of(os.lstat(path))

    def make_private(self, path: str, owner: int) -> None:
        facts = self.describe(path)
        if facts.kind not in (NameKind.FILE, NameKind.DIRECTORY):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if facts.owner != owner:
            os.chown(path, owner, -1, follow_symlinks=False)
        os.chmod(path, 0o700 if facts.kind is NameKind.DIRECTORY else 0o600)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o700)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def list_directory(self, path: str) -> list[str]:
        return os.listdir(path)

    def open_directory(self, path: str, *, may_be_link: bool = False) -> IDirectory:
        return PosixDirectory(os.open(path, _PATH if may_be_link else _PATH | os.O_NOFOLLOW), self._flags)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, _DIRECTORY)
        try:
            _sync_names(fd)
        finally:
            os.close(fd)

    def sync_file_system(self, path: str) -> None:
        fd = os.open(path, _DIRECTORY)
        try:
            sync_by(fd, path)
        finally:
            os.close(fd)

    def sync_together(self, items: Sequence[ISynced]) -> None:
        self._several.run([item.sync for item in items])

    def open_file_system(self, paths: Sequence[str]) -> IFileSystem | None:
        return open_trusted(paths)

    def create(self, path: str) -> IFile:
        return PosixFile(os.open(path, _CREATE, 0o600))

    def open(self, path: str) -> IFile:
        return PosixFile(os.open(path, self._flags | os.O_NONBLOCK))

    def link(self, path: str, new_path: str) -> None:
        os.link(path, new_path, follow_symlinks=False)

    def rename(self, path: str, new_path: str) -> None:
        os.rename(path, new_path)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rename_new(self, path: str, new_path: str) -> None:
        _rename_new(_AT_CWD, path, _AT_CWD, new_path)

    def lock(self, path: str, *, is_shared: bool = False) -> ILock | None:
        create_flag = 0 if self._access is Access.READ_ONLY else os.O_CREAT
        fd = os.open(path, self._flags | create_flag, 0o600)
        try:
            is_locked = _try_lock(fd, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        except OSError:
            os.close(fd)
            raise
        if not is_locked:
            os.close(fd)
            return None
        return PosixLock(fd)

    def space(self, path: str) -> Space:
        found = os.statvfs(path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_favail)

    def refuse_unsafe(self, path: str) -> str | None:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return f"{path} is a symbolic link; name the directory itself"
        if not stat.S_ISDIR(found.st_mode):
            return f"{path} is not a directory"
        if found.st_uid != os.geteuid():
            owner = f"{path} belongs to user {found.st_uid}, not to this program's"
            return f"{owner}; run the program as that user, or run: chown -R {os.geteuid()} {path}"
        if found.st_mode & 0o077:
            return f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):04o}); run: chmod 700 {path}"
        return _refuse_parents(path)


def _refuse_parents(path: str) -> str | None:
    """Why a parent directory is unsafe: a user who can write one that is not sticky could replace our directory."""
    parent = os.path.dirname(os.path.realpath(path))
    while True:
        found = os.stat(parent)
        if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX and not _is_own_group(found):
            return f"{parent} can be written by others (mode {stat.S_IMODE(found.st_mode):04o}); run: chmod go-w {parent}"
        if parent == "/":
            return None
        parent = os.path.dirname(parent)


def _is_own_group(found: os.stat_result) -> bool:
    """Whether only the group root can write it besides its owner."""
    return not found.st_mode & 0o002 and found.st_gid == 0
