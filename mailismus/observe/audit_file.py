"""The file of an audit log: opened by name, made if missing, appended to. Everything blocks and runs in one thread.

*Rules*: mode 0600, directory 0700; a regular file, never a symbolic link. Nothing is synced: a power cut may lose the last
seconds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK


class AuditFile:
    """The open file."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._path = ""

    def append(self, path: str, data: bytes, *, anew: bool) -> int:
        """Append to the file of this name; returns the number of bytes written. `anew`: open the name again first. Raises
        OSError: none were written."""
        if anew or path != self._path:
            descriptor = _open(path)
            self.close()
            self._descriptor, self._path = descriptor, path
        return os.write(self._descriptor, data) if data else 0

    def close(self) -> None:
        """Close the file."""
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
        # A daemon's descriptors 0 to 2 become /dev/null. If they were closed at start, this file must not get one of them.
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return moved
