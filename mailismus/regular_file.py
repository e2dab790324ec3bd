"""Regular files, read without waiting for another process: a FIFO, a device or a socket of that name is refused.

*Rules*: open with `O_NONBLOCK`, so that a FIFO without a writer does not block, and check `S_ISREG` before the first read.

*Weakness*: a file system that does not answer (NFS without its server) blocks the caller all the same. Where that matters,
call this in a thread that may be abandoned.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

PIECE_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


@attrs.frozen
class Content:
    """The bytes of a file and its permission bits."""

    data: bytes = attrs.field(repr=False)
    mode: int


def read_regular(path: str, max_bytes: int, on_piece: Callable[[], None] = lambda: None) -> Content:
    """Read the first `max_bytes` bytes of a regular file. Calls `on_piece` after each answer of the file system. Raises
    `OSError`, also if it is not a regular file."""
    with opened_regular(path) as (descriptor, status):
        on_piece()
        pieces = []
        left = max_bytes
        while left and (piece := os.read(descriptor, min(left, PIECE_BYTES))):
            on_piece()
            pieces.append(piece)
            left -= len(piece)
    return Content(b"".join(pieces), stat.S_IMODE(status.st_mode))


@contextmanager
def opened_regular(path: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for the block: its descriptor, and what the opened file is. Raises `OSError`, also if it is not a
    regular file."""
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        _check_kind(status.st_mode, path)
        yield descriptor, status
    finally:
        os.close(descriptor)


def _check_kind(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "of another kind")
        raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are read", path)
