"""Delivery of one message into one maildir, by the six steps of the format. Blocking: for a pool thread.

1. the maildir is opened (a descriptor takes the place of `chdir`, which a threaded process can't use); 2. a name is made and
looked for in `tmp`; 3. if it is there, another is made, a few times; 4. it is created, exclusively; 5. the message is
written, every count checked, synced and closed; 6. it is linked into `new` and `new` is synced: *now* it is
delivered. Then the name in `tmp` goes; a crash before that leaves it, and it is swept after 36 hours.

*Rules*: directories are made on demand (0700) and synced with the directory that names them; files are 0600; `tmp` and
`new` are never followed as symbolic links. Anything that fails is an `OSError` and leaves no message in `new`, with one
exception: if only the last sync fails, the message may be there, and a second try makes a second copy.

*Not here*: which user an address is, replies, threads.
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
    """One message on its way into one maildir. `write` any number of times, then `finish`; `abandon` after any trouble."""

    def __init__(self, tmp_fd: int, new_fd: int, name: str, file_fd: int) -> None:
        self._tmp_fd, self._new_fd, self._name = tmp_fd, new_fd, name
        self._file_fd = file_fd
        self._conversion = Conversion()

    def write(self, piece: bytes) -> None:
        """A piece of content as on the wire. Raises OSError."""
        write_all(self._file_fd, self._conversion.convert(piece))

    def finish(self) -> None:
        """Steps 5 and 6: durable in `new` when it returns. Raises OSError."""
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
                pass  # the sweep takes it
            _ignore_errors(os.close, tmp_fd)
            _ignore_errors(os.close, self._new_fd)


def begin_delivery(userpath: str, user: bytes, mailpath: str, names: NameSource, now: float, head: bytes) -> Delivery:
    """Steps 1 to 4 in the maildir `userpath/USER/mailpath`; `head` (lines ending in LF) is written before the content.

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
    """A descriptor of the maildir; what is missing of it is made, durably. Raises OSError; the caller closes."""
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
    """Make a directory (0700) and those above it that are missing, each synced into the one that names it."""
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
    """Write all of it, whatever the number each call takes. Raises OSError."""
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
