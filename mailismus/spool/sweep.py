"""The sweep: message files that no message of the queue needs, left by a crash between a draft and its commit.

A name is a stray only if its spool id is of an earlier start than this one (no draft of ours can own it) and the queue
does not know it, or not the recipient whose name it is. One silo at a time, beside reception; everything here blocks.

A stray may be what belongs to a line that did not check. So while something is set aside, strays are set aside beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.spool.quarantine import quarantine_file
from mailismus.spool.silo import SILO_NAMES, parse_message_name


def sweep_silo(
    disk: IDisk, root: str, silo: int, before: SpoolId, is_needed: Callable[[SpoolId, int], bool], quarantine: str = ""
) -> int:
    """Unlink the strays of one silo, those of spool ids below `before`; gives their number. `is_needed` is asked with the
    spool id and the number of the recipient whose name it is (0: all share it). `quarantine`: the directory that they are
    moved to instead. Names that are none of ours are left alone. Raises OSError."""
    path = os.path.join(root, SILO_NAMES[silo])
    count = 0
    for name in disk.list_directory(path):
        found = parse_message_name(name)
        if found is not None and found[0] < before and not is_needed(*found):
            if quarantine:
                quarantine_file(disk, os.path.join(path, name), quarantine)
            disk.unlink(os.path.join(path, name))
            count += 1
    return count
