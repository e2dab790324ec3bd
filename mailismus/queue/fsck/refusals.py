"""Refusals of a repair: what it must not be begun on. Nothing was changed when one is raised. Blocks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mailismus.disk.interface import IDisk, NameKind
from mailismus.errors import StartError
from mailismus.spool.silo import SILO_NAMES


def refuse_other_user(disk: IDisk, root: str) -> None:
    """Raise `StartError` (77) where the queue belongs to another user; `OSError`."""
    owner = disk.describe(root).owner
    if owner != os.geteuid():
        text = f"{root} belongs to user {owner}: repair it as that user, or files would be made that it can't read"
        raise StartError(os.EX_NOPERM, text)


def refuse_other_than_directories(disk: IDisk, roots: Mapping[str, Sequence[str]]) -> None:
    """Refuse symbolic links: a write below one would go wherever it leads. `roots`: directories, each with the names of
    those in it. Raises `StartError` (77), `OSError`."""
    for root, names in roots.items():
        for path in (root, *(os.path.join(root, name) for name in names)):
            if disk.exists(path) and (kind := disk.describe(path).kind) is not NameKind.DIRECTORY:
                text = f"{path} is {kind.value}, not a directory: put the directory back; nothing was changed"
                raise StartError(os.EX_NOPERM, text)


def refuse_empty_spool(disk: IDisk, journal_path: str, spool_path: str) -> None:
    """Refuse a spool that is not mounted: all messages would look lost, and all entries would become bounces. Raises
    `StartError` (78), `OSError`."""
    silos = [os.path.join(spool_path, name) for name in SILO_NAMES]
    if any(disk.exists(silo) for silo in silos) or not disk.exists(journal_path) or not disk.list_directory(journal_path):
        return
    text = (
        f"{spool_path} is empty, but the queue is not new: mount the spool, or bring it back; if it is really gone, make "
        f"the directory {silos[0]} and begin again: then messages that are nowhere else are given up"
    )
    raise StartError(os.EX_CONFIG, text)
