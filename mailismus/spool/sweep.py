"""The sweep: removes stray message files, which no message of the queue needs; a crash between draft and commit leaves them.

A name is a stray only if its spool id is of an earlier start than this one (so no current draft owns it), and the queue does
not know the message, or not the recipient that the name is for. It handles one silo at a time, beside reception. Blocks.

A stray may belong to a damaged line. So while the quarantine holds anything, strays are put there before they are unlinked.
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
    """Unlink the strays of one silo with spool ids below `before`; return their number. `is_needed` gets a spool id and the
    number of the recipient that the name is for (0: the shared name). `quarantine`: a directory that keeps the strays, if
    given. Other names are left alone. Raises OSError."""
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
