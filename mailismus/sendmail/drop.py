"""A message into the drop directory, without a server: durable on return. Blocks.

    made under ".NAME", locked -> written -> fsync -> linked as "NAME" -> syncfs -> ".NAME" removed

*Rules*: a file counts under a name without a dot, at once and whole, or never. Its name is random: no user can guess those
of others. What a killed program leaves has a dot before its name and no lock; the server puts it aside. Users may not list
the directory, so they can't open it for fsync either: the barrier behind the link is one over its file system, by the file
that is open since before it was written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import time
from collections.abc import Sequence
from typing import BinaryIO

from mailismus.disk.file_system import sync_by
from mailismus.errors import StartError
from mailismus.sendmail.drop_format import BadDrop, encode_end, encode_opening, pieces_of
from mailismus.sendmail.places import FILE_MODE, check_drop, drop_path

_NAME_BYTES = 12


def drop_message(rootpath: str, sender: bytes, recipients: Sequence[bytes], message: BinaryIO, size_bytes: int) -> str:
    """Leave a message for the server's next look; return the name of its file when it is durable. `message`: from its place
    on. Raises `StartError`."""
    path = drop_path(rootpath)
    group = check_drop(path)
    name = f"{int(time.time())}.{os.getpid()}.{os.urandom(_NAME_BYTES).hex()}"
    try:
        directory = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _write(directory, path, group, name, sender, recipients, message, size_bytes)
        finally:
            os.close(directory)
    except BadDrop as error:
        raise StartError(os.EX_DATAERR, str(error)) from None
    except OSError as error:
        raise StartError(
            os.EX_NOPERM if isinstance(error, PermissionError) else os.EX_TEMPFAIL,
            f"no server takes the message, and it can't be left in {path}: {error.strerror}",
        ) from None
    return name


def _write(
    directory: int,
    path: str,
    group: int,
    name: str,
    sender: bytes,
    recipients: Sequence[bytes],
    message: BinaryIO,
    size_bytes: int,
) -> None:
    made = "." + name
    file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_gid != group:
            raise StartError(os.EX_CONFIG, f"files in {path} do not get its group: its file system can't be used for it")
        digest = hashlib.sha256()
        opening = encode_opening(sender, recipients, size_bytes)
        for piece in itertools.chain((opening,), pieces_of(message, size_bytes)):
            digest.update(piece)
            _write_all(file, piece)
        _write_all(file, encode_end(digest.digest()))
        os.fchmod(file, FILE_MODE)
        os.fsync(file)
        os.link(made, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        try:
            sync_by(file, path)
        except OSError:
            with contextlib.suppress(OSError):  # it is not durable; the server may have taken it all the same
                os.unlink(name, dir_fd=directory)
            raise
    finally:
        with contextlib.suppress(OSError):  # the server was faster, or will remove it
            os.unlink(made, dir_fd=directory)
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
