"""The configuration file, replaced whole: at every moment its name leads to the old text or to the new one.

    lock the file -> read -> (the caller edits and checks) -> new text in a file beside it, synced -> old text in another,
    synced -> is it still what was read? -> rename the old text to FILE~ -> rename the new one to FILE -> sync the directory

*Rules*: symbolic links are followed; mode, owner and access control list are kept. The lock (flock) is on the file itself
and goes with it: who waited for it opens the file anew. It keeps out others that use this module; a change by anyone else is
found before the rename, and raises `Changed`. What a killed process left beside the file is removed by the next one.

*Weakness*: a change that another program makes between the last look and the rename, some microseconds, is lost.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat

from mailismus.errors import MailismusError

_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
_MAKE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_PIECE_BYTES = 1 << 20
_ACL = "system.posix_acl_access"


class Changed(MailismusError):
    """Another program has changed the file since it was read."""


class NotDurable(MailismusError):
    """The file is changed, and whether a power cut undoes that is not known."""


class Replacement:
    """A configuration file, locked from `open` to `close`. `data`: its bytes; `path`: where it is, links followed."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self.data = b""
        self._descriptor = -1
        directory, name = os.path.split(self.path)
        self._directory = directory
        self._new_path = os.path.join(directory, f".{name}.mailismus-new")
        self._old_path = os.path.join(directory, f".{name}.mailismus-old")

    @property
    def kept_path(self) -> str:
        """Where the former text is, after `replace`."""
        return f"{self.path}~"

    def open(self, max_bytes: int) -> None:
        """Lock and read the file, up to this size. Waits for the lock. Raises `OSError`."""
        while self._descriptor < 0:
            descriptor = os.open(self.path, _READ_FLAGS)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(errno.EINVAL, "it is not a regular file", self.path)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_same(os.fstat(descriptor), self._status()):
                    self._descriptor, descriptor = descriptor, -1
            finally:
                if descriptor >= 0:
                    os.close(descriptor)
        self.data = self._read(max_bytes)

    def close(self) -> None:
        """Give the lock back. Harmless when repeated."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def replace(self, data: bytes) -> None:
        """Make these the bytes of the file. Raises `Changed` or `OSError`: the file is as it was then; or `NotDurable`: it
        is changed."""
        try:
            self._write_beside(self._new_path, data)
            self._write_beside(self._old_path, self.data)
            self._check_unchanged()
            os.rename(self._old_path, self.kept_path)
            os.rename(self._new_path, self.path)
        except BaseException:
            for path in (self._new_path, self._old_path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise
        try:
            self._sync_directory()
        except OSError as error:
            raise NotDurable(f"{self.path} was changed, but {self._directory} can't be synced: {error.strerror}") from error

    def _status(self) -> os.stat_result | None:
        try:
            return os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _read(self, max_bytes: int) -> bytes:
        pieces, offset = [], 0
        while offset < max_bytes and (piece := os.pread(self._descriptor, min(_PIECE_BYTES, max_bytes - offset), offset)):
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces)

    def _check_unchanged(self) -> None:
        if not _is_same(os.fstat(self._descriptor), self._status()) or self._read(len(self.data) + 1) != self.data:
            raise Changed(f"{self.path} was changed by another program meanwhile; it is left as that wrote it")

    def _write_beside(self, path: str, data: bytes) -> None:
        """A new file with this content, durable, with owner, mode and access control list of the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, _MAKE_FLAGS, 0o600)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            self._copy_status(descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _copy_status(self, descriptor: int) -> None:
        status, own = os.fstat(self._descriptor), os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        try:
            acl = os.getxattr(self._descriptor, _ACL)
        except OSError:
            return  # the file has none, or the file system
        os.setxattr(descriptor, _ACL, acl)

    def _sync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_same(one: os.stat_result, other: os.stat_result | None) -> bool:
    return other is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
