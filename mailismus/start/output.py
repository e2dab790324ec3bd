"""The output: a file descriptor that log lines are written to, without ever waiting for its reader.

*Rules*: a file takes everything at once. Opening waits for nobody: a FIFO that nobody reads is an error. A pipe or terminal
is asked first whether it takes some, and then gets no more than it surely takes without waiting (PIPE_BUF bytes); its mode
is never changed, since other processes share it. A socket (the journal of systemd) is sent to without waiting.

*Not here*: what is written, and what becomes of what could not be (`start.logfile`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import stat

_PIECE = select.PIPE_BUF
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class Output:
    """Standard output, or another descriptor that is somebody else's."""

    def __init__(self, descriptor: int) -> None:
        self._use(descriptor)

    def _use(self, descriptor: int) -> None:
        self._descriptor = descriptor
        kind = os.fstat(descriptor).st_mode
        self._is_file = stat.S_ISREG(kind)
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(kind) else None
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def write(self, data: memoryview) -> int:
        """Bytes taken, from the beginning; 0 when none can be now. Raises `OSError`."""
        if self._is_file:
            return os.write(self._descriptor, data)
        if self._socket is not None:
            try:
                return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return 0
        return os.write(self._descriptor, data[:_PIECE]) if self.wait(0) else 0

    def wait(self, timeout_s: float) -> bool:
        """Whether it takes something, or has failed, within that time."""
        return bool(self._poll.poll(timeout_s * 1000))

    def reopen(self) -> None:
        """Nothing to do for a descriptor that is not ours."""


class FileOutput(Output):
    """A log file: appended to, made where it is missing (mode 0600), reopened by name. Raises `OSError`."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        super().__init__(_open(self.path))

    def reopen(self) -> None:
        """Go on in the file that has the name now. On `OSError` the old one is kept."""
        old = self._descriptor
        self._use(_open(self.path))
        os.close(old)


def _open(path: str) -> int:
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a FIFO or a device that nobody reads", path) from None
        raise
    if descriptor > 2:
        return descriptor
    # A daemon's descriptors 0 to 2 become /dev/null: stay clear of them, should they have been closed at start.
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved
