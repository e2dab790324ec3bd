"""The output: a file descriptor for log lines, written without ever waiting for its reader.

*Rules*: a file takes all bytes at once. Opening does not wait: a FIFO without a reader is an error. A pipe or terminal is
polled first, and then gets at most PIPE_BUF bytes, which it surely takes without waiting; its mode is never changed, since
other processes share it. A socket (systemd's journal) is sent to without waiting.

*Not here*: the lines, and the bytes that could not be written (`start.logfile`).
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
    """Standard output, or another descriptor that this program does not own."""

    def __init__(self, descriptor: int) -> None:
        self._adopt(descriptor)

    def _adopt(self, descriptor: int) -> None:
        self._descriptor = descriptor
        kind = os.fstat(descriptor).st_mode
        self._is_file = stat.S_ISREG(kind)
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(kind) else None
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def write(self, data: memoryview) -> int:
        """Write as much as possible; returns the number of bytes, 0 if none can be written now. Raises `OSError`."""
        if self._is_file:
            return os.write(self._descriptor, data)
        if self._socket is not None:
            try:
                return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return 0
        return os.write(self._descriptor, data[:_PIECE]) if self.wait(0) else 0

    def wait(self, timeout_s: float) -> bool:
        """Wait until it takes bytes, or has failed. False: neither within that time."""
        return bool(self._poll.poll(timeout_s * 1000))

    def reopen(self) -> None:
        """Do nothing: the descriptor is not ours."""


class FileOutput(Output):
    """A log file, made if missing (mode 0600), appended to, reopened by name. Raises `OSError`."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        super().__init__(_open(self.path))

    def reopen(self) -> None:
        """Continue in the file that has the name now. On `OSError` the old file stays in use."""
        old = self._descriptor
        self._adopt(_open(self.path))
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
    # A daemon's descriptors 0 to 2 become /dev/null. If they were closed at start, the log must not get one of them.
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved
