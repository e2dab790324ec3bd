"""Forgetting: removes the old queue of a conversion. It may be stopped anywhere and begun again, also while a server runs:
no server touches these files.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs

from mailismus.disk.interface import IDisk, ILock, NameStanding
from mailismus.errors import Corrupt, StartError
from mailismus.queue.convert.places import ConversionPlaces, places_of, remove_tree
from mailismus.queue.files.conversion import (
    NEW_STATE,
    STATE,
    ConversionState,
    QueueConversion,
    damaged_state,
    read_conversion,
    refuse_between,
    write_conversion,
)
from mailismus.queue.files.directories import LOCK, check_safe


def lock_conversion(disk: IDisk, places: ConversionPlaces) -> ILock:
    """Lock the directory of the conversion, which exists, against other conversions. Raises `StartError` (75), `OSError`."""
    path = os.path.join(places.queue.base, LOCK)
    lock = disk.lock(path)
    if lock is not None and lock.standing(path) is NameStanding.NAMED:
        return lock
    if lock is not None:
        lock.release()
    raise StartError(os.EX_TEMPFAIL, f"another conversion of {places.queue.path} is under way: wait for its end")


def forget_old(disk: IDisk, queue_path: str, forget: Callable[[str], None] = lambda source: None) -> QueueConversion:
    """Remove the old queue. Return what the conversion was. `forget`: removes what its provider, of this name, has in
    services. Raises `StartError`: 77 for another user's queue, 78 where there
    is none, 75 where directories are changing places, or another conversion is under way; `OSError`."""
    check_safe(disk, queue_path)
    refuse_between(disk, queue_path)
    found = _read(disk, queue_path)
    if found is None:
        raise StartError(os.EX_CONFIG, f"{queue_path} keeps no old queue: there is nothing to forget")
    places = places_of(queue_path, found.spool_path)
    lock = lock_conversion(disk, places)
    try:
        again = _read(disk, queue_path)
        if again is None or again.state.is_between:
            raise StartError(os.EX_TEMPFAIL, f"another conversion of {queue_path} has begun meanwhile")
        if found.state is not ConversionState.FORGETTING:
            write_conversion(disk, queue_path, attrs.evolve(found, state=ConversionState.FORGETTING))
        forget(found.source)
        remove_remains(disk, places)
    finally:
        lock.release()
    return found


def remove_remains(disk: IDisk, places: ConversionPlaces) -> None:
    """Remove all of a conversion that needs nothing any more, its state last. Raises `OSError`."""
    clear_bases(disk, places)
    if places.spool is not None:
        _remove_base(disk, places.spool.base, ())
    _remove_base(disk, places.queue.base, (NEW_STATE, STATE, LOCK))


def clear_bases(disk: IDisk, places: ConversionPlaces) -> None:
    """Remove all of a conversion but its state and its lock. Raises `OSError`."""
    for root in places.roots:
        for name in sorted(disk.list_directory(root.base)) if disk.exists(root.base) else ():
            if name not in (STATE, NEW_STATE, LOCK):
                remove_tree(disk, os.path.join(root.base, name))


def _remove_base(disk: IDisk, base: str, files: tuple[str, ...]) -> None:
    """Remove the directory of a conversion, which has these files left. That nothing else is left is durable before."""
    if not disk.exists(base):
        return
    disk.sync_directory(base)
    for name in files:
        if disk.exists(path := os.path.join(base, name)):
            disk.unlink(path)
    disk.remove_directory(base)
    disk.sync_directory(os.path.dirname(base))


def _read(disk: IDisk, queue_path: str) -> QueueConversion | None:
    try:
        return read_conversion(disk, queue_path)
    except Corrupt as error:
        raise damaged_state(error) from error
