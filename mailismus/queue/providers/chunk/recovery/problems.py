"""Problems of a message that was read: told in the log, and bytes that do not check are kept. Blocks."""

from __future__ import annotations

import os
import zlib

from twisted.logger import Logger

from mailismus.queue.providers.chunk.recovery.found import FoundChunk
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.spool.quarantine import keep_corrupt

_log = Logger()


def note_problems(queue: ChunkDirectories, found: FoundChunk) -> bool:
    """Log the problems of a number, and copy lines that do not check to `corrupt/`: the next change of the message writes
    its files anew. Return False for one of which a file can't be read: it must stay as it is. Raises OSError."""
    for problem in found.problems:
        _log.error("{path}: {text}.", path=problem.path, text=problem.text)
    if found.is_unreadable:
        return False
    for problem in found.problems:
        if problem.bad:
            name = f"{os.path.basename(problem.path)}-{zlib.crc32(problem.bad):08x}"
            corrupt = os.path.join(queue.root, "corrupt")
            keep_corrupt(queue.disk, corrupt, name, b"from %b\n" % os.fsencode(problem.path), problem.bad)
    return True
