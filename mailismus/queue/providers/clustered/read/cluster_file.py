"""The bytes of a cluster file."""

from __future__ import annotations

from mailismus.disk.interface import IDisk, close_read


def read_file(disk: IDisk, path: str, length: int | None) -> bytes:
    """Return all bytes of a file, or the first `length`. Raises OSError."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size() if length is None else length)
    finally:
        close_read(file)
