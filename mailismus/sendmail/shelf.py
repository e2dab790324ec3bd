"""The drop directory as the server sees it: which files count, one file that is read, removed or put aside. Blocks.

*Rules*: users make the files, and may do so in any way: a name is opened without following links or waiting, and only a
regular file is read. Who left a message is the owner of its file. A file without a dot before its name counts; one with a
dot counts never: if nobody has it locked, its program was killed before the end, and it is put aside after a minute. Nothing
is removed but what is in the queue. Users take turns, whatever their files are called. However many files there are, a look
asks for the owners of `MOST_LOOKED` only, others at each look.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import stat
import time
from collections.abc import Iterable
from itertools import chain, islice, zip_longest
from typing import BinaryIO

import attrs

from mailismus.sendmail.drop_format import BadDrop, Drop, read_drop
from mailismus.sendmail.places import aside_path, drop_path

MOST_NAMES = 1000
"""Files that one look finds."""
MOST_LOOKED = 10_000
"""Names of either kind that one look asks the file system about."""
_MOST_NAME_BYTES = 100
"""Of a file's name, behind the time in its name in `aside`."""
HALF_AGE_S = 60.0
"""Seconds since the last write to a file that does not count, behind which it is looked at."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@attrs.define(eq=False)
class OpenDrop:
    """A dropped message that is whole, at its first byte. `uid`: who left it. Close it."""

    name: str
    uid: int
    drop: Drop
    file: BinaryIO

    def read(self, most_bytes: int) -> bytes:
        """The next bytes; none behind the last one. Raises `BadDrop` if it was cut meanwhile, OSError."""
        left = self.drop.begins_at + self.drop.size_bytes - self.file.tell()
        piece = self.file.read(min(most_bytes, left))
        if left and not piece:
            raise BadDrop("it was cut while it was read")
        return piece

    def close(self) -> None:
        """Close the file."""
        self.file.close()


@attrs.frozen
class WaitingDrop:
    """A file that counts. `uid`: its owner; -1: not known."""

    name: str
    uid: int


@attrs.frozen
class Aside:
    """A file that was put aside, and why. `uid`: its owner, -1: not known."""

    name: str
    uid: int
    why: str


class Shelf:
    """The drop directory of `<sendmail>` in `rootpath`."""

    def __init__(self, rootpath: str) -> None:
        self._drop, self._aside = drop_path(rootpath), aside_path(rootpath)
        self._fixed: set[str] = set()
        """What does not count and can't be moved: told once."""

    def waiting(self, left_out: set[str]) -> list[WaitingDrop]:
        """The files that count but these, the users in turn, the oldest of each first, so many at most. Names that are gone
        are removed from `left_out`. Raises OSError."""
        there = os.listdir(self._drop)
        if left_out:
            left_out.intersection_update(there)
        names = _some(name for name in there if not name.startswith(".") and name not in left_out)
        of_users: dict[int, list[WaitingDrop]] = {}
        for name in sorted(names):
            with contextlib.suppress(FileNotFoundError):
                uid = self._owner(name)
                of_users.setdefault(uid, []).append(WaitingDrop(name, uid))
        turns = chain.from_iterable(zip_longest(*of_users.values()))
        return list(islice((one for one in turns if one is not None), MOST_NAMES))

    def _owner(self, name: str) -> int:
        try:
            return os.lstat(self._path(name)).st_uid
        except FileNotFoundError:
            raise
        except OSError:
            return -1

    def put_half_aside(self, now: float) -> list[Aside]:
        """Put aside what killed programs left. Raises OSError."""
        found = []
        there = os.listdir(self._drop)
        if self._fixed:
            self._fixed.intersection_update(there)
        for name in _some(name for name in there if name.startswith(".")):
            if name in self._fixed or not self._is_left(name, now):
                continue
            try:
                found.append(self.put_aside(name, "its program ended before it was complete"))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._fixed.add(name)
                found.append(Aside(name, -1, f"no, for it can't be moved: {error.strerror}"))
        return found

    def _is_left(self, name: str, now: float) -> bool:
        try:
            known = os.lstat(self._path(name))
            if now - known.st_mtime < HALF_AGE_S or known.st_nlink > 1:  # two names: the message is taken under the other
                return False
            if not stat.S_ISREG(known.st_mode):
                return True
            file = os.open(self._path(name), _READ)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(file)
        return True

    def open(self, name: str, most_bytes: int) -> OpenDrop | None:
        """Open a message of at most so many bytes, addresses and all (0: no limit); None: it is gone. Raises `BadDrop`,
        OSError where the disk fails."""
        try:
            descriptor = os.open(self._path(name), _READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.EACCES, errno.ELOOP, errno.ENXIO, errno.EPERM):
                raise BadDrop(f"it can't be opened: {error.strerror}") from None
            raise
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            os.close(descriptor)
            raise BadDrop("it is no regular file")
        file = os.fdopen(descriptor, "rb")
        try:
            if 0 < most_bytes < known.st_size:
                raise BadDrop(f"it has {known.st_size} bytes, and {most_bytes} are the limit")
            drop = read_drop(file, known.st_size)
            file.seek(drop.begins_at)
            return OpenDrop(name, known.st_uid, drop, file)
        except BaseException:
            file.close()
            raise

    def remove(self, name: str) -> None:
        """Remove a message that is in the queue: durable on return. Raises OSError."""
        with contextlib.suppress(OSError):  # there is none; or it is something else, and not of this message
            os.unlink(self._path("." + name))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(name))
        directory = os.open(self._drop, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def put_aside(self, name: str, why: str) -> Aside:
        """Move a file out of the way, under a name of its own; a directory is removed if it is empty. Raises OSError."""
        known = os.lstat(self._path(name))
        if stat.S_ISDIR(known.st_mode):  # to move it would need its owner's permission
            os.rmdir(self._path(name))
            return Aside(name, known.st_uid, f"{why}; it was empty, and is removed")
        end = os.fsdecode(os.fsencode(name.lstrip("."))[:_MOST_NAME_BYTES])
        os.rename(self._path(name), os.path.join(self._aside, f"{time.time_ns()}.{end}"))
        return Aside(name, known.st_uid, why)

    def _path(self, name: str) -> str:
        return os.path.join(self._drop, name)


def _some(names: Iterable[str]) -> list[str]:
    """All names; of very many some by chance, so that nobody's names keep those of others out for long."""
    found = list(names)
    return found if len(found) <= MOST_LOOKED else random.sample(found, MOST_LOOKED)
