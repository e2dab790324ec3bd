"""Writes the file of due times. Blocks.

*Rules*: it is a hint, and never synced: a power cut may leave it missing or torn, and a start passes it over then.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress

from mailismus.disk.interface import IDisk
from mailismus.queue.providers.chunk.format.due_times import format_due_times
from mailismus.queue.providers.chunk.format.version import DUE_FILE, NEW_DUE_FILE


def write_due_times(disk: IDisk, root: str, numbers: array[int], times: array[float]) -> None:
    """Replace the file. Raises OSError: the former one is there then, or none. Durable afterwards: nothing."""
    new_path = os.path.join(root, NEW_DUE_FILE)
    with suppress(FileNotFoundError):
        disk.unlink(new_path)
    try:
        file = disk.create(new_path)
        try:
            file.write_at(0, format_due_times(numbers, times))
        finally:
            file.close()
        disk.rename(new_path, os.path.join(root, DUE_FILE))
    except OSError:
        with suppress(OSError):
            disk.unlink(new_path)
        raise
