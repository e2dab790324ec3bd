"""Messages that rest, read from their files. Blocks.

*Rules*: the number of a message that goes comes back with another one. So who reads a number compares spool ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.logger import Logger

from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.rows import RestingFacts
from mailismus.queue.providers.chunk.recovery.found import find_chunk
from mailismus.queue.providers.chunk.recovery.problems import note_problems
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

_log = Logger()


def read_messages(queue: ChunkDirectories, wanted: Sequence[RestingFacts], *, notes: bool) -> list[KnownChunk | None]:
    """The messages in their order; None: it can't be read, or is another one. `notes`: problems are told, and what does not
    check is kept (`recovery.problems`)."""
    return [_read(queue, facts, notes=notes) for facts in wanted]


def _read(queue: ChunkDirectories, facts: RestingFacts, *, notes: bool) -> KnownChunk | None:
    found = find_chunk(queue, facts.number, is_new=facts.is_new)
    if notes:
        try:
            note_problems(queue, found)
        except OSError as error:
            _log.error("What does not check of {number} can't be kept: {error}", number=facts.number, error=error)
            return None
    if found.is_unreadable or found.known is None or found.known.message.spool_id != facts.spool_id:
        return None
    return found.known
