"""The file of positions of a stopped log: its blocks, and what a server left while it made it."""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import partial

from mailismus.disk.interface import NameKind, close_read
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.names import NameCheck, try_twice
from mailismus.queue.fsck.local.problems import FileProblem, problem
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.log.format.positions import BLOCK, NAME, NEW_NAME, Positions, decode_positions
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind


def check_positions(checking: Checking, names: NameCheck) -> Generator[FileProblem, None, Positions | None]:
    """Yield all problems; return the positions that count after a repair."""
    new_path, path = (os.path.join(checking.queue_path, name) for name in (NEW_NAME, NAME))
    if checking.disk.exists(new_path):
        yield problem(LogFindingKind.POSITIONS_LEFT, new_path)
    if not checking.disk.exists(path):
        return None
    if checking.disk.describe(path).kind is not NameKind.FILE:
        yield from names.check(path, NameKind.FILE)
        return None
    yield from names.check(path, NameKind.FILE)
    try:
        data = try_twice(lambda: _read(checking, path))
    except OSError as error:
        why = error.strerror or str(error)
        yield problem(LogFindingKind.UNREADABLE, path, None, partial(actions.move_aside, path), why=why)
        return None
    counts = decode_positions(data)
    if counts is None:
        yield problem(LogFindingKind.POSITIONS_LOST, path, 0, partial(actions.move_aside, path))
        return None
    for offset in (0, BLOCK):
        if decode_positions(data[offset : offset + BLOCK]) is None:
            mend = partial(actions.put_right, path, offset, counts.encode(), offset, BLOCK)
            yield problem(LogFindingKind.POSITIONS_BLOCK, path, offset, mend)
    return counts


def _read(checking: Checking, path: str) -> bytes:
    file = checking.disk.open(path)
    try:
        return file.read_at(0, 2 * BLOCK)
    finally:
        close_read(file)
