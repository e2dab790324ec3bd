"""The admin socket in the file system: made private, connected to, replaced when stale.

*Rules*: a private socket is 0600, any other 0666; a directory made for it is 0700. A directory that others can write is
refused: they could put a socket of their own there. Paths may be longer than the name of a socket can be.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import struct
from collections.abc import Iterator

from mailismus.errors import StartError

_MAX_NAME_BYTES = 100


def bind_socket(path: str, *, is_private: bool = True) -> socket.socket:
    """Return a listening socket at `path`, non-blocking; a stale one there is replaced. Not private: every user who reaches
    it may connect. Raises `StartError`."""
    _make_directory(os.path.dirname(path))
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        mask = os.umask(0o177 if is_private else 0o111)
        try:
            with _name_of(path) as name:
                listening.bind(name)
        finally:
            os.umask(mask)
        listening.listen(16)
    except OSError as error:
        listening.close()
        raise StartError(_status_of(error), f"admin socket {path}: {error.strerror}") from None
    return listening


def connect_socket(path: str, timeout_s: float) -> socket.socket | None:
    """Return a connection to the server that listens at `path`, blocking; None if there is none. Raises `OSError`."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Blocking: a non-blocking socket is refused while many wait to be accepted, instead of waiting with them.
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", *divmod(int(timeout_s * 1e6), 10**6)))
        with _name_of(path) as name:
            connected.connect(name)
        connected.settimeout(timeout_s)
    except OSError as error:
        connected.close()
        if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR):
            return None
        raise
    return connected


def inode_of(path: str) -> tuple[int, int]:
    """Return the inode that the name leads to now. No other file has a socket's inode while it is bound. Raises OSError."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _remove_stale(path: str) -> None:
    """Remove a socket without a listener; refuse the start for any other file there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(_status_of(error), f"admin socket {path}: {error.strerror}") from None
    if not stat.S_ISSOCK(mode):
        raise StartError(os.EX_CONFIG, f"admin socket {path}: what is there is no socket; remove it or name another path")
    try:
        alive = connect_socket(path, 5.0)
        if alive is None:
            os.unlink(path)
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(_status_of(error), f"admin socket {path}: {error.strerror or error}") from None
    alive.close()
    raise StartError(os.EX_TEMPFAIL, f"admin socket {path}: another server listens there")


def _make_directory(directory: str) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        status = os.lstat(directory)
    except OSError as error:
        raise StartError(_status_of(error), f"directory of the admin socket {directory}: {error.strerror}") from None
    if stat.S_ISLNK(status.st_mode):
        raise StartError(os.EX_CONFIG, f"directory of the admin socket {directory}: a symbolic link; name the real one")
    if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        text = f"directory of the admin socket {directory}: others can write there; chmod go-w {directory}"
        raise StartError(os.EX_CONFIG, text)


@contextlib.contextmanager
def _name_of(path: str) -> Iterator[str]:
    """Yield a name for the socket at `path` that is short enough: a long path goes by a descriptor of its directory."""
    if len(os.fsencode(path)) <= _MAX_NAME_BYTES:
        yield path
        return
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{os.path.basename(path)}"
    finally:
        os.close(directory)


def _status_of(error: OSError) -> int:
    if error.errno in (errno.EACCES, errno.EPERM):
        return os.EX_NOPERM
    return os.EX_TEMPFAIL if error.errno == errno.EADDRINUSE else os.EX_IOERR
