"""Delivery of one message into one maildir, by the six steps of the format. Blocks: for a pool thread.

1. Open the maildir (a descriptor replaces `chdir`, which a threaded process can't use). 2. Make a name and look for it in
`tmp`. 3. If it exists, make another, a few times. 4. Create the file exclusively. 5. Write the message, check every count,
sync, close. 6. Link the file into `new` and sync `new`: *now* the message is delivered. Then remove the name in `tmp`. A
crash before that leaves the name, and a sweep removes it after 36 hours.

*Rules*: missing directories are made (0700) and synced with their parents; files are 0600; `tmp` and `new` are never
followed as symbolic links. Every failure is an `OSError` and leaves no message in `new`, with one exception: if only the
last sync fails, the message may be there, and the next attempt makes a second copy.

*Not here*: which user an address belongs to, replies, threads.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from mailismus.maildir.conversion import Conversion
from mailismus.maildir.names import NameSource

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 3
SUBDIRECTORIES = ("tmp", "new", "cur")


class Delivery:
    """A delivery that has begun. Call `write` any number of times, then `finish`; call `abandon` after any failure."""

    def __init__(self, tmp_fd: int, new_fd: int, name: str, file_fd: int) -> None:
        self._tmp_fd, self._new_fd, self._name = tmp_fd, new_fd, name
        self._file_fd = file_fd
        self._conversion = Conversion()

    def write(self, piece: bytes) -> None:
        """Write a piece of content as on the wire. Raises OSError."""
        write_all(self._file_fd, self._conversion.convert(piece))

    def finish(self) -> None:
        """Do steps 5 and 6: the message is durable in `new` on return. Raises OSError."""
        write_all(self._file_fd, self._conversion.finish())
        os.fsync(self._file_fd)
        file_fd, self._file_fd = self._file_fd, -1
        os.close(file_fd)
        os.link(self._name, self._name, src_dir_fd=self._tmp_fd, dst_dir_fd=self._new_fd, follow_symlinks=False)
        os.fsync(self._new_fd)
        self.abandon()

    def abandon(self) -> None:
        """Close everything and remove the name in `tmp`. Harmless when repeated; never raises."""
        if self._file_fd >= 0:
            file_fd, self._file_fd = self._file_fd, -1
            _ignore_errors(os.close, file_fd)
        if self._tmp_fd >= 0:
            tmp_fd, self._tmp_fd = self._tmp_fd, -1
            try:
                os.unlink(self._name, dir_fd=tmp_fd)
            except OSError:
                pass  # a sweep removes it
            _ignore_errors(os.close, tmp_fd)
            _ignore_errors(os.close, self._new_fd)


def begin_delivery(userpath: str, user: bytes, mailpath: str, names: NameSource, now: float, head: bytes) -> Delivery:
    """Do steps 1 to 4 in the maildir `userpath/USER/mailpath`, and write `head` (lines ending in LF) before the content.

    `now`: UTC seconds. Raises OSError.
    """
    maildir_fd = open_maildir(userpath, user, mailpath)
    tmp_fd = new_fd = -1
    try:
        tmp_fd = os.open("tmp", _DIRECTORY | os.O_NOFOLLOW, dir_fd=maildir_fd)
        new_fd = os.open("new", _DIRECTORY | os.O_NOFOLLOW, dir_fd=maildir_fd)
        name, file_fd = _create(tmp_fd, names, now)
    except OSError:
        for fd in (tmp_fd, new_fd):
            if fd >= 0:
                os.close(fd)
        raise
    finally:
        os.close(maildir_fd)
    delivery = Delivery(tmp_fd, new_fd, name, file_fd)
    try:
        write_all(file_fd, head)
    except OSError:
        delivery.abandon()
        raise
    return delivery


def open_maildir(userpath: str, user: bytes, mailpath: str) -> int:
    """Open the maildir and make its missing directories, durably. Returns a descriptor, which the caller closes. Raises
    OSError."""
    name = os.fsdecode(user)
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, "a user of this name can have no maildir")
    path = os.path.join(userpath, name, mailpath)
    try:
        fd = os.open(path, _DIRECTORY)
    except FileNotFoundError:
        make_directories(path)
        fd = os.open(path, _DIRECTORY)
    try:
        made = False
        for subdirectory in SUBDIRECTORIES:
            try:
                os.mkdir(subdirectory, 0o700, dir_fd=fd)
                made = True
            except FileExistsError:
                pass
        if made:
            os.fsync(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def make_directories(path: str) -> None:
    """Make a directory (0700) and its missing parents, each synced into its parent."""
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        make_directories(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    fd = os.open(parent, _DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, with as many calls as it takes. Raises OSError."""
    rest = memoryview(data)
    while rest:
        written = os.write(fd, rest)
        if written <= 0:
            raise OSError(errno.EIO, "nothing was written")
        rest = rest[written:]


def _create(tmp_fd: int, names: NameSource, now: float) -> tuple[str, int]:
    for _ in range(_TRIES):
        name = names.next_name(now)
        try:
            os.stat(name, dir_fd=tmp_fd, follow_symlinks=False)
        except FileNotFoundError:
            try:
                return name, os.open(name, _CREATE, 0o600, dir_fd=tmp_fd)
            except FileExistsError:
                continue
    raise FileExistsError(errno.EEXIST, "no free name in tmp")


def _ignore_errors(close: Callable[[int], None], fd: int) -> None:
    try:
        close(fd)
    except OSError:
        pass
