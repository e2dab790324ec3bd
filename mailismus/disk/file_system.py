"""A barrier over a whole file system: syncfs(2), where its answer can be trusted.

*Rules*: the descriptor is open from before the writes: a failed write-back is told once to each descriptor that was open
when it happened, and to none that is opened after another program was told. Where a failure might not be told there is no
such barrier: before Linux 5.17, which was the first to tell what the file system itself answers; and on all but ext4 and
XFS, with which it was tried (an overlay, for one, keeps the failures of the file system below it to itself). A file system
that an error has made read-only may answer "done", and is asked for that.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Sequence

from mailismus.disk.interface import IFileSystem

LEAST_KERNEL = (5, 17)
_EXT4, _XFS = 0xEF53, 0x58465342
_TRUSTED = frozenset((_EXT4, _XFS))
"""Numbers of file systems in statfs(2)."""
_STATFS_BYTES = 256
"""More than a `struct statfs` has; its first field, a long, is the number of the file system."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)
"""For syncfs(2) and fstatfs(2), which Python does not offer. A call through ctypes lets other threads run."""


def sync_by(fd: int, path: str) -> None:
    """syncfs(2) by this descriptor. Raises OSError."""
    while _libc.syncfs(fd):
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), path)
    if os.fstatvfs(fd).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)


def open_trusted(paths: Sequence[str]) -> IFileSystem | None:
    """The one file system of these directories; None: there are several, or its answers can't be trusted. Raises OSError."""
    if not is_trusted_kernel(os.uname().release) or len({os.stat(path).st_dev for path in paths}) > 1:
        return None
    fd = os.open(paths[0], _DIRECTORY)
    try:
        if _kind_of(fd) in _TRUSTED:
            return PosixFileSystem(fd, paths[0])
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def is_trusted_kernel(release: str) -> bool:
    """Whether syncfs of this release of Linux tells every failure."""
    found = re.match(r"([0-9]+)\.([0-9]+)", release)
    return found is not None and (int(found[1]), int(found[2])) >= LEAST_KERNEL


def _kind_of(fd: int) -> int:
    answer = (ctypes.c_ulong * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_ulong)))()
    if _libc.fstatfs(fd, ctypes.byref(answer)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(answer[0])


class PosixFileSystem:
    """`IFileSystem`."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd, self._path = fd, path

    def sync(self) -> None:
        sync_by(self._fd, self._path)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
