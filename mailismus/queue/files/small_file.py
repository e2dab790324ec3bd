"""Small files that are read whole, and replaced whole: the former bytes or the new ones are there after a crash.

Used for the mark of a queue, the state of a conversion, and the number of parts of a queue of chunks.
"""

from __future__ import annotations

import os

from mailismus.disk.interface import IDisk, NameKind, close_read
from mailismus.errors import Corrupt


def read_small_file(disk: IDisk, path: str, longest: int, what: str) -> bytes | None:
    """Return the bytes of a file, one more than `longest` at most; None: there is no such name. Raises `Corrupt` for
    anything but a regular file (`what`: what it should be), `OSError`."""
    if not disk.exists(path):
        return None
    kind = disk.describe(path).kind
    if kind is not NameKind.FILE:
        raise Corrupt(path, 0, f"it is {kind.value}, not {what}")
    file = disk.open(path)
    try:
        return file.read_at(0, longest + 1)
    finally:
        close_read(file)


def replace_small_file(disk: IDisk, path: str, new_path: str, data: bytes) -> None:
    """Write a file in place of any other of its name, by way of `new_path` beside it, which a killed process may have left.
    It is durable afterwards; after a crash there is the former file or this one. Raises `OSError`."""
    if disk.exists(new_path):
        disk.unlink(new_path)
    file = disk.create(new_path)
    try:
        file.write_at(0, [data])
        file.sync()
    finally:
        file.close()
    disk.rename(new_path, path)
    disk.sync_directory(os.path.dirname(path))
