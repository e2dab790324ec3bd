"""The audit's file: opened by name, appended to, made where it is missing. Everything here blocks and runs in one thread.

*Rules*: mode 0600, its directory 0700; a regular file and no symbolic link. Nothing is synced: a power cut may cost the last
seconds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK


class AuditFile:
    """The file that is open."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._path = ""

    def append(self, path: str, data: bytes, *, anew: bool) -> int:
        """Append to the file of this name; gives the number of bytes taken. `anew`: to the one that has the name now.
        Raises OSError: none were taken."""
        if anew or path != self._path:
            descriptor = _open(path)
            self.close()
            self._descriptor, self._path = descriptor, path
        return os.write(self._descriptor, data) if data else 0

    def close(self) -> None:
        """Close it."""
        descriptor, self._descriptor, self._path = self._descriptor, -1, ""
        if descriptor >= 0:
            os.close(descriptor)


def _open(path: str) -> int:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    descriptor = os.open(path, _FLAGS, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        if descriptor > 2:
            return descriptor
        # A daemon's descriptors 0 to 2 become /dev/null: stay clear of them, should they have been closed at start.
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return moved
