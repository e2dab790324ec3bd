"""A trigger: a named pipe by which programs tell a server that there is something new.

    a program: pull -> one byte -> the server's reactor: the pipe is readable -> drain, then look

*Rules*: a trigger says nothing but "look". One that is pulled while no server has it open is lost, and a full pipe says
enough. Neither end ever waits for the other.
"""

from __future__ import annotations

import os
import stat

_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_MOST = 4096
"""Bytes that one drain reads: a pull for each."""


class Trigger:
    """The server's end."""

    def __init__(self, path: str) -> None:
        """Make the pipe where it is not there, and open it. Something else of this name is an OSError."""
        try:
            os.mkfifo(path, 0o600)
        except FileExistsError:
            pass
        self._path = path
        self._fd = os.open(path, os.O_RDWR | _FLAGS)  # both ends: it is never at its end
        if not stat.S_ISFIFO(os.fstat(self._fd).st_mode):
            self.close()
            raise FileExistsError(17, "it is no named pipe", path)

    def fileno(self) -> int:
        """The descriptor, for the reactor; -1: it is closed."""
        return self._fd

    def drain(self) -> None:
        """Take what was pulled so far. Never raises OSError."""
        try:
            os.read(self._fd, _MOST)
        except OSError:
            pass  # nothing was there

    def remove(self) -> None:
        """Remove the name. Never raises OSError."""
        try:
            os.unlink(self._path)
        except OSError:
            pass  # the next server uses it

    def close(self) -> None:
        """Close it. Harmless when repeated."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def pull(path: str) -> bool:
    """Tell the server. Return whether one listens, as far as that can be told. Never raises OSError."""
    try:
        fd = os.open(path, os.O_WRONLY | _FLAGS)
    except OSError:
        return False  # there is none, or nobody has it open
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and os.write(fd, b"!") == 1
    except BlockingIOError:
        return True  # it is full: the server will look
    except OSError:
        return False
    finally:
        os.close(fd)
