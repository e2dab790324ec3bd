"""Files that a running program replaces now and then, and may lose: the former bytes or the new ones are there after a kill.

*Rules*: nothing is synced, and nothing waits for it. A power cut may leave such a file missing, empty or cut anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mailismus.disk.interface import IDisk


def replace_unsynced(disk: IDisk, path: str, new_path: str, data: Sequence[bytes]) -> None:
    """Write a file in place of any other of its name, by way of `new_path` beside it, which a killed process may have left.
    Raises `OSError`: the file is as it was then, and the room of the new one is free again if the disk permits. Durable
    afterwards: nothing."""
    with suppress(FileNotFoundError):
        disk.unlink(new_path)
    try:
        file = disk.create(new_path)
        try:
            file.write_at(0, data)
        finally:
            file.close()
        disk.rename(new_path, path)
    except OSError:
        with suppress(OSError):
            disk.unlink(new_path)
        raise
