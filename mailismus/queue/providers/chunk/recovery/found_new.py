"""What writers in other processes did to a running queue: messages that they committed, and what killed ones left. Blocks.

*Rules*: it is looked for between two batches, so that what this server does itself is either all known or not there. A
message whose writer still holds its lock is not committed yet. The scan of a start may be under way: a number is born before
its message is read, so that the scan passes it over from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from mailismus.queue.providers.chunk.format.version import TODO, parse_number
from mailismus.queue.providers.chunk.recovery.abandoned import is_being_written, remove_begun
from mailismus.queue.providers.chunk.recovery.found import FoundChunk, find_state, names_of
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

MOST = 200
"""Messages of one look: commits wait for it."""


@attrs.frozen
class FoundBeside:
    """What one look found. `error`: it could not be done, or not to its end."""

    messages: Sequence[FoundChunk]
    in_todo: Collection[int] = ()
    """All numbers with a name there."""
    has_more: bool = False
    """Another look will find more at once."""
    removed: int = 0
    """Messages that were never committed."""
    error: OSError | None = None


def look_beside(
    queue: ChunkDirectories, born: BornNumbers, ours: Collection[int], passed_over: Collection[int], *, sweeps: bool
) -> FoundBeside:
    """Look for new messages. `born` is told of their numbers. `ours`: numbers of this server's own messages in S4, of its
    cleanings, and of what the scan of a start is to take; `passed_over`: numbers that earlier looks could make nothing of;
    `sweeps`: remove what killed writers left, too. Raises no OSError."""
    found: list[FoundChunk] = []
    try:
        in_todo = {number for name in queue.of(TODO).names() if (number := parse_number(name)) is not None}
        wanted = sorted(number for number in in_todo if number not in ours and number not in passed_over)
        for number in wanted[:MOST]:
            if is_being_written(queue, number):
                continue
            born.add(number)
            names = names_of(queue, number)
            if TODO in names:  # else its writer could not make it durable, and removed it
                found.append(find_state(queue, number, names))
        removed = remove_begun(queue, {*ours, *in_todo}) if sweeps else 0
    except OSError as error:
        return FoundBeside((), error=error)
    return FoundBeside(found, in_todo, len(wanted) > MOST, removed)
