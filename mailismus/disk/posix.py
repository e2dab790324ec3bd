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

from mailismus.disk.interface import IDirectory, IFile, ILock, NameFacts, NameKind, NameStanding, Space

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {stat.S_IFREG: NameKind.FILE, stat.S_IFDIR: NameKind.DIRECTORY, stat.S_IFLNK: NameKind.LINK}
_libc = ctypes.CDLL(None, use_errno=True)
"""For syncfs(2), which Python does not offer. A call through ctypes lets other threads run."""
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
    """An open directory, used only to recognize it later."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def standing(self, path: str) -> NameStanding:
        return _standing(self._fd, path)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class PosixDisk:
    """`IDisk` over system calls."""

    def __init__(self, access: Access = Access.READ_WRITE) -> None:
        """READ_ONLY: open files for reading alone, for commands that only read."""
        self._access = access
        self._flags = _FLAGS | access.value

    def exists(self, path: str) -> bool:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def describe(self, path: str) -> NameFacts:
        found = os.lstat(path)
        mode = found.st_mode
        kind = _KINDS.get(stat.S_IFMT(mode), NameKind.OTHER)
        inode = (found.st_dev, found.st_ino)
        return NameFacts(kind, found.st_uid, stat.S_IMODE(mode), inode, found.st_nlink, found.st_size)

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

    def open_directory(self, path: str) -> IDirectory:
        return PosixDirectory(os.open(path, _FLAGS | os.O_PATH | os.O_DIRECTORY))

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_file_system(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            while _libc.syncfs(fd):
                number = ctypes.get_errno()
                if number != errno.EINTR:
                    raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)

    def create(self, path: str) -> IFile:
        return PosixFile(os.open(path, _FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    def open(self, path: str) -> IFile:
        return PosixFile(os.open(path, self._flags | os.O_NONBLOCK))

    def link(self, path: str, new_path: str) -> None:
        os.link(path, new_path, follow_symlinks=False)

    def rename(self, path: str, new_path: str) -> None:
        os.rename(path, new_path)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def lock(self, path: str) -> ILock | None:
        create_flag = 0 if self._access is Access.READ_ONLY else os.O_CREAT
        fd = os.open(path, self._flags | create_flag, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            os.close(fd)
            raise
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
            return f"{path} belongs to user {found.st_uid}, not to this program's; run: chown -R {os.geteuid()} {path}"
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
