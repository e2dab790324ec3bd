"""The bytes of a cluster file, and its live lines."""

from __future__ import annotations

from mailismus.disk.interface import IDisk, close_read
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import FoundLine, find_lines, read_lines


def read_file(disk: IDisk, path: str, length: int | None) -> bytes:
    """Return all bytes of a file, or the first `length`. Raises OSError."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size() if length is None else length)
    finally:
        close_read(file)


def read_live(disk: IDisk, path: str, area: Area, length: int | None, spool_id: SpoolId | None = None) -> list[FoundLine]:
    """Return the lines of a cluster file whose state byte is live; `spool_id`: those of this message alone. Raises
    OSError."""
    data = read_file(disk, path, length)
    lines = read_lines(data, area, length) if spool_id is None else find_lines(data, area, length, spool_id)
    return [found for found in lines if isinstance(found, FoundLine) and not found.is_done]
