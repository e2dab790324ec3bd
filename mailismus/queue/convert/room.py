"""Is there room for the new queue? Looked at before anything of it is written: bytes and inodes of both file systems."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mailismus.disk.interface import IDisk, Space
from mailismus.errors import StartError
from mailismus.queue.convert.places import ConversionPlaces
from mailismus.queue.provider import IQueueBuilder, QueueRoom, StoredPart

SPARE_SHARE = 0.01
"""Share of a file system's bytes and inodes that stays free."""


def room_needed(builder: IQueueBuilder, messages: Iterable[StoredPart]) -> QueueRoom:
    """What the new queue takes. Raises what `messages` raises."""
    room = builder.room
    for part in messages:
        room += builder.room_of(part.message)
    return room


def refuse_without_room(disk: IDisk, places: ConversionPlaces, needed: QueueRoom) -> None:
    """Raise `StartError` (74) where a file system has less room. Raises `OSError`."""
    queue, spool = places.queue.path, places.spool.path if places.spool is not None else None
    if spool is None or disk.describe(queue).inode[0] == disk.describe(spool).inode[0]:
        everything = (needed.queue_bytes + needed.spool_bytes, needed.queue_inodes + needed.spool_inodes)
        _refuse(disk.space(queue), queue, *everything)
        return
    _refuse(disk.space(queue), queue, needed.queue_bytes, needed.queue_inodes)
    _refuse(disk.space(spool), spool, needed.spool_bytes, needed.spool_inodes)


def _refuse(space: Space, path: str, size_bytes: int, inodes: int) -> None:
    free_bytes = space.free_bytes - int(space.size_bytes * SPARE_SHARE)
    free_inodes = space.free_inodes - int(space.inodes * SPARE_SHARE)
    if size_bytes > free_bytes:
        lacking = f"{size_bytes:,} bytes, and {max(0, free_bytes):,} are free"
    elif space.inodes and inodes > free_inodes:
        lacking = f"{inodes:,} inodes, and {max(0, free_inodes):,} are free"
    else:
        return
    text = f"the new queue needs {lacking} in the file system of {path} (1 % is left alone)"
    raise StartError(os.EX_IOERR, f"{text}; make room there and begin again; nothing was changed")
