"""Ownership: whether a directory is that of a clustered queue, asked before a start or a repair changes anything in it.

The mark says it (`queue.files.mark`). A start makes the directories durable before it writes the mark. So where a mark is
damaged and none of the directories is there, the mark is that of another provider.
"""

from __future__ import annotations

import os

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.mark import MARK as MARK_NAME
from mailismus.queue.files.mark import damaged, read_mark, refuse_other
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.version import FORMATS, NAME


def has_directories(disk: IDisk, queue_path: str) -> bool:
    """Whether a directory of a clustered queue is there. One is enough: the others may lie on a disk that is not mounted.
    Raises `OSError`."""
    return any(disk.exists(os.path.join(queue_path, name)) for name in ("journal", *(area.value for area in Area)))


def refuse_foreign(disk: IDisk, queue_path: str) -> None:
    """Raise `StartError` where the mark is another provider's (78), of a format that this version does not read (65), or
    damaged (65). Raises `OSError` where it can't be read."""
    try:
        found = read_mark(disk, queue_path)
    except Corrupt as error:
        raise (damaged(error) if has_directories(disk, queue_path) else _unknown(queue_path, error.text)) from error
    if found is not None:
        refuse_other(found, NAME, FORMATS, queue_path)


def refuse_unknown(disk: IDisk, queue_path: str) -> None:
    """Raise `StartError` (65) where the mark is damaged or can't be read, and no directory of a clustered queue is there."""
    try:
        read_mark(disk, queue_path)
    except (Corrupt, OSError) as error:
        if not has_directories(disk, queue_path):
            raise _unknown(queue_path, error.text if isinstance(error, Corrupt) else str(error)) from error


def _unknown(queue_path: str, why: str) -> StartError:
    what = f"{os.path.join(queue_path, MARK_NAME)}: {why}, and no directory of a clustered queue is beside it"
    text = f"{what}: restore this file from a copy, or write another <rootpath>; nothing was changed"
    return StartError(os.EX_DATAERR, text)
