"""A file that a command makes for its user: written whole beside its place, then renamed into it.

*Rules*: at every moment the name leads to the old file or to the whole new one. What is there and is no regular file (a
directory, a symbolic link, a FIFO, a device) is left alone and refused. The mode is 0600: the file tells who gets mail.

*Not promised*: that the file survives a power cut.
"""

from __future__ import annotations

import os
import stat
import tempfile

from mailismus.errors import StartError


def write_file(path: str, data: bytes) -> None:
    """Write a file, in place of a regular one of that name. Raises `StartError` (74), with `path` as it was."""
    new_path = None
    try:
        if _is_of_another_kind(path):
            raise StartError(os.EX_IOERR, f"{path} is there and is no regular file: name another file")
        descriptor, new_path = tempfile.mkstemp(prefix=".mailismus-", dir=os.path.dirname(path) or ".")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.rename(new_path, path)
        new_path = None
    except OSError as error:
        raise StartError(os.EX_IOERR, f"can't write {path}: {error.strerror}") from None
    finally:
        if new_path is not None:
            os.unlink(new_path)


def _is_of_another_kind(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
