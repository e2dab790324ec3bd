"""What a server keeps on its own disk: lock, mark, and the name by which other servers know it. Blocks.

    directories -> lock -> mark -> name

*Rules*: a name is made once, at random, and never changes; the host's name is before it. So the copy of a directory on
another host is another server, and no two servers take each other's lease for their own.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

import attrs

from mailismus.disk.interface import IDisk, ILock
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.directories import lock_roots, make_directories
from mailismus.queue.files.refusals import errors_refuse_start
from mailismus.queue.files.small_file import read_small_file, replace_small_file
from mailismus.queue.providers.distributed.format.version import OWNERSHIP, SERVER, STATE

NAME_FILE, _NEW_FILE = "name", "name.new"
_NAME = re.compile(rb"[0-9a-f]{16}\n").fullmatch
_LONGEST = 100


@attrs.frozen
class OwnPlace:
    """The locked directory of a server. `name`: the server's own."""

    name: str
    lock: ILock


def open_place(disk: IDisk, root: str, host: str, random_bits: Callable[[int], int]) -> OwnPlace:
    """Lock the directory of a server, and learn its name. `host`: the name of this host. Raises `StartError`."""
    with errors_refuse_start():
        OWNERSHIP.refuse_foreign(disk, root)
        make_directories(disk, root, ())
        (lock,) = lock_roots(disk, (root,))
        try:
            make_directories(disk, root, (SERVER, STATE))
            OWNERSHIP.mark(disk, root, is_known=True)
            return OwnPlace(f"{host} {_name_in(disk, root, random_bits)}", lock)
        except BaseException:
            lock.release()
            raise


def read_name(disk: IDisk, path: str) -> str | None:
    """The name in a file; None: it holds none. Raises `FileNotFoundError`, `Corrupt`, `OSError`."""
    found = read_small_file(disk, path, _LONGEST, "the name of a server")
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return found.decode("ascii").strip() if _NAME(found) else None


def _name_in(disk: IDisk, root: str, random_bits: Callable[[int], int]) -> str:
    path, new_path = (os.path.join(root, SERVER, name) for name in (NAME_FILE, _NEW_FILE))
    try:
        if not disk.exists(path):
            replace_small_file(disk, path, new_path, b"%016x\n" % random_bits(64))
        name = read_name(disk, path)
    except Corrupt as error:
        raise StartError(os.EX_DATAERR, f"{error.path}: {error.text}: remove it, and start again") from error
    if name is None:
        text = f"{path} holds no name of a server: remove it; a lease of this server is void 30 s after its end"
        raise StartError(os.EX_DATAERR, text)
    return name
