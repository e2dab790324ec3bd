"""The sweep: message files that no message of the queue needs, left by a crash between a draft and its commit.

A file is a stray only if its spool id is of an earlier start than this one (no draft of ours can own it) and the queue
does not know it. One silo at a time, beside reception; everything here blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.spool.silo import SILO_NAMES, spool_id_of


def sweep_silo(disk: IDisk, root: str, silo: int, before: SpoolId, is_needed: Callable[[SpoolId], bool]) -> int:
    """Unlink the strays of one silo, those of spool ids below `before`; gives their number. Names that are none of ours
    are left alone. Raises OSError."""
    path = os.path.join(root, SILO_NAMES[silo])
    count = 0
    for name in disk.list_directory(path):
        spool_id = spool_id_of(name)
        if spool_id is not None and spool_id < before and not is_needed(spool_id):
            disk.unlink(os.path.join(path, name))
            count += 1
    return count
