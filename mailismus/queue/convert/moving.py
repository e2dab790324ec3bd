"""Moving: the directories of the old and the new queue change places, forward only.

    MOVING_OUT  --all old names moved, both directories synced-->  MOVING_IN  --all new names moved, synced-->  KEPT

*Rules*: a state is durable before the first act of its step, and all acts of a step are durable before the next state. So
a step that was stopped anywhere is done again: in MOVING_OUT whatever lies in a directory is old, in MOVING_IN whatever lies
in `conversion/new` belongs there. A start is refused between (`queue.files.conversion`).
"""

from __future__ import annotations

import os

import attrs

from mailismus.disk.interface import IDisk, NameKind
from mailismus.errors import StartError
from mailismus.queue.convert.places import ConversionPlaces, ConversionRoot, remove_tree
from mailismus.queue.files.conversion import ConversionState, QueueConversion, write_conversion


def change_places(disk: IDisk, places: ConversionPlaces, conversion: QueueConversion) -> None:
    """Go on from the state of `conversion`, which is durable, to `KEPT`. Raises `StartError`, `OSError`; then it is called
    again."""
    state = conversion.state
    if state is ConversionState.MOVING_OUT:
        for root in places.roots:
            _make_directory(disk, root.old)
            _move_names(disk, root, root.path, root.old)
        state = _go_on(disk, places, conversion, ConversionState.MOVING_IN)
    if state is ConversionState.MOVING_IN:
        for root in places.roots:
            if disk.exists(root.new):
                _move_names(disk, root, root.new, root.path)
        _go_on(disk, places, conversion, ConversionState.KEPT)
    for root in places.roots:
        remove_tree(disk, root.new)
    remove_tree(disk, places.work)


def refuse_unmovable(disk: IDisk, places: ConversionPlaces) -> None:
    """Raise `StartError` (78) where a name can't be renamed into `conversion/old`: it is a file system of its own, or a
    link. Asked before anything is written. Raises `OSError`."""
    for root in places.roots:
        device = disk.describe(root.path).inode[0]
        for name in sorted(disk.list_directory(root.path)):
            facts = disk.describe(path := os.path.join(root.path, name))
            if name not in root.kept and (facts.kind is NameKind.LINK or facts.inode[0] != device):
                what = facts.kind.value if facts.kind is NameKind.LINK else "a file system of its own"
                text = f"{path} is {what}, which can't change places: move what is in it into {root.path} itself"
                raise StartError(os.EX_CONFIG, f"{text}; nothing was changed")


def _go_on(disk: IDisk, places: ConversionPlaces, conversion: QueueConversion, state: ConversionState) -> ConversionState:
    write_conversion(disk, places.queue.path, attrs.evolve(conversion, state=state))
    return state


def _make_directory(disk: IDisk, path: str) -> None:
    if not disk.exists(path):
        disk.make_directory(path)
    disk.sync_directory(os.path.dirname(path))


def _move_names(disk: IDisk, root: ConversionRoot, source: str, target: str) -> None:
    """Move every name that changes places. Durable afterwards."""
    for name in sorted(disk.list_directory(source)):
        path, new_path = os.path.join(source, name), os.path.join(target, name)
        if name in root.kept:
            if source == root.new:
                remove_tree(disk, path)  # the builder made it, and it is empty: that of the queue's directory stays
            continue
        if disk.exists(new_path) and not _give_way(disk, path, new_path):
            continue
        disk.rename(path, new_path)
    disk.sync_directory(target)
    disk.sync_directory(source)


def _give_way(disk: IDisk, path: str, new_path: str) -> bool:
    """Make way for the name at `path`, and return True; or remove it, where it is the one that is empty. Only a start that
    began at the same moment makes empty directories there. Raises `StartError` (65) where both hold something."""
    for one in (new_path, path):
        if disk.describe(one).kind is NameKind.DIRECTORY and not disk.list_directory(one):
            disk.remove_directory(one)
            return one == new_path
    text = f"{path} and {new_path} are both there: another program has written to the queue since the conversion was stopped"
    raise StartError(os.EX_DATAERR, f"{text}; move the one away that is not of this queue, and begin again")
